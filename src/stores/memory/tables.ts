import type { NewMessage } from "../../core/message.ts";
import type { EntryRow } from "./entry-row.ts";
import { type RowLocks, rowLocks } from "./row-locks.ts";

/** All that is committed. */
export interface Tables {
  readonly entries: Map<string, EntryRow>;
  readonly business: Map<string, object[]>;
  readonly messages: NewMessage[];
  readonly locks: RowLocks;
  /** The store's clock, in milliseconds since the epoch. */
  readonly now: () => number;
}

/** What one step on an entry does: leave the row as it is, or replace it (`null`: delete it). */
export type Change<R> =
  | { readonly kind: "keep"; readonly answer: R }
  | { readonly kind: "write"; readonly row: EntryRow | null; readonly answer: R };

/** A step on one entry: decided and done without an await in between. */
export type EntryStep<R> = (row: EntryRow | null, now: number) => Change<R>;

/** Leaves the row as it is. */
export function keep<R>(answer: R): Change<R> {
  return { kind: "keep", answer };
}

/** Replaces the row; inside a transaction this also holds its lock until the end. */
export function write<R>(row: EntryRow | null, answer: R): Change<R> {
  return { kind: "write", row, answer };
}

/** Makes empty tables. */
export function emptyTables(now: () => number): Tables {
  return { entries: new Map(), business: new Map(), messages: [], locks: rowLocks(), now };
}

/** An entry's id as a map key. */
export function entryKey(id: Uint8Array): string {
  return Buffer.from(id).toString("hex");
}

/** A statement begins after the caller has yielded, never in its own tick: as with any real store. */
export async function arrive(): Promise<void> {
  await null;
}

/**
 * A step in a commit of its own: waits for the row, decides and writes at once, lets the row go. The step's own values
 * must be copies already: the caller may change its bytes while this waits.
 */
export async function commitStep<R>(tables: Tables, id: Uint8Array, step: EntryStep<R>): Promise<R> {
  const key = entryKey(id);
  const holder = {};
  await arrive();
  await tables.locks.acquire(key, holder);
  try {
    const change = step(tables.entries.get(key) ?? null, tables.now());
    if (change.kind === "write") putEntry(tables, key, change.row);
    return copied(change.answer);
  } finally {
    tables.locks.release(key, holder);
  }
}

/** Stores or deletes a row. */
export function putEntry(tables: Tables, key: string, row: EntryRow | null): void {
  if (row === null) tables.entries.delete(key);
  else tables.entries.set(key, row);
}

/**
 * A copy that shares nothing with the original: bytes, dates, lists and plain objects. Bytes become a plain Uint8Array;
 * `Buffer.slice` would share memory.
 */
export function copied<T>(value: T): T {
  return copyOf(value) as T;
}

function copyOf(value: unknown): unknown {
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (value instanceof Date) return new Date(value);
  if (Array.isArray(value)) return value.map(copyOf);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copyOf(member)]));
}
