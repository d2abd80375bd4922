import type { Delivery, Producer, Subject } from "../../core/delivery.ts";
import type { EntryState } from "../../core/entry.ts";
import type { Intent } from "../../core/intent.ts";
import type { NewMessage } from "../../core/message.ts";
import type { MessageState } from "../../core/outbox.ts";
import type { Random } from "../../core/random.ts";
import type { Resolution } from "../../core/resolution.ts";
import type { SequenceNumber } from "../../core/sequence.ts";
import type { SweepTarget } from "../../core/store.ts";
import type { EntryRow } from "./entry-row.ts";
import { type RowLocks, rowLocks } from "./row-locks.ts";

/** An outbox row; instants are the store clock's. */
export interface MessageRow extends NewMessage {
  /** Drawn when it is sent, not when it is committed. */
  readonly seq: bigint;
  readonly state: MessageState;
  /** How often it was claimed. */
  readonly attempt: number;
  /** The relay that leased it; `null`: nobody since it was sent or given back. */
  readonly fence: Uint8Array | null;
  readonly createdAt: number;
  /** From when on it may be claimed: after its delay, a lease, or a postponement. */
  readonly availableAt: number;
  readonly deliveredAt: number | null;
  readonly reason: string | null;
}

/** A remembered delivery. */
export interface DeliveryRow {
  readonly digest: Uint8Array;
  readonly delivery: Delivery;
  readonly value: Uint8Array | null;
  readonly receivedAt: number;
  readonly expiresAt: number;
}

/** How far a producer has come. */
export interface ProducerRow {
  readonly producer: Producer;
  readonly last: SequenceNumber;
}

/** The newest version of a subject. */
export interface SubjectRow {
  readonly subject: Subject;
  readonly version: bigint;
}

/** Who settled an entry by hand, and what was known then. */
export interface ResolutionRow {
  readonly entryId: Uint8Array;
  readonly verdict: Resolution["verdict"];
  readonly status: number | null;
  /** Decided although something sent could still land. */
  readonly forced: boolean;
  readonly by: string;
  readonly note: string | null;
  readonly stateBefore: EntryState;
  readonly reasonBefore: string | null;
  readonly openIntents: readonly Intent[];
  readonly resolvedAt: number;
}

/** All that is committed. */
export interface Tables {
  readonly entries: Map<string, EntryRow>;
  readonly business: Map<string, object[]>;
  /** By id, in the order of their commit. */
  readonly messages: Map<string, MessageRow>;
  readonly deliveries: Map<string, DeliveryRow>;
  readonly producers: Map<string, ProducerRow>;
  readonly subjects: Map<string, SubjectRow>;
  readonly resolutions: ResolutionRow[];
  /** Bodies that may have to be removed, by pointer. */
  readonly bodies: Map<string, { readonly entryId: Uint8Array; readonly checkAt: number }>;
  readonly targets: Map<string, SweepTarget & { readonly seenAt: number }>;
  readonly locks: RowLocks;
  /** The next message's place in the order of sending. */
  readonly nextSeq: () => bigint;
  /** A new owner token. */
  readonly newFence: () => Uint8Array;
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

const FENCE_LENGTH = 16;

/** Makes empty tables. */
export function emptyTables(now: () => number, random: Random): Tables {
  let lastSeq = 0n;
  return {
    entries: new Map(),
    business: new Map(),
    messages: new Map(),
    deliveries: new Map(),
    producers: new Map(),
    subjects: new Map(),
    resolutions: [],
    targets: new Map(),
    bodies: new Map(),
    locks: rowLocks(),
    nextSeq() {
      lastSeq += 1n;
      return lastSeq;
    },
    newFence: () => new Uint8Array(random.bytes(FENCE_LENGTH)),
    now,
  };
}

const tablesByStore = new WeakMap<object, Tables>();

/** Remembers what a store was made of, for {@link tablesOf}. */
export function rememberTables<S extends object>(store: S, tables: Tables): S {
  tablesByStore.set(store, tables);
  return store;
}

/** What a memory store is made of, for code that must see all of it at once (the explorer). Raises for any other store. */
export function tablesOf(store: object): Tables {
  const tables = tablesByStore.get(store);
  if (tables === undefined) throw new TypeError("Only what memoryStore() made has tables.");
  return tables;
}

/** An id or digest as a map key. */
export function entryKey(id: Uint8Array): string {
  return Buffer.from(id).toString("hex");
}

/** A statement begins after the caller has yielded, never in its own tick: as with any real store. */
export async function arrive(): Promise<void> {
  await null;
}

/**
 * A step in a commit of its own: waits for the row, decides and writes at once, lets the row go. The step's own values
 * must be copies already: the caller may change its bytes while this waits. `onlyInserts`: it leaves a row that is there.
 */
export async function commitStep<R>(
  tables: Tables,
  id: Uint8Array,
  step: EntryStep<R>,
  { onlyInserts = false } = {},
): Promise<R> {
  const key = entryKey(id);
  const holder = {};
  await arrive();
  // As ON CONFLICT DO NOTHING: a row is in the way at once, unless a change of it is still to be committed.
  const there = tables.entries.get(key);
  if (onlyInserts && there !== undefined && tables.locks.isOnlyLocked(key)) {
    return copied(step(there, tables.now()).answer);
  }
  await tables.locks.acquire(key, holder);
  try {
    const change = step(tables.entries.get(key) ?? null, tables.now());
    if (change.kind === "write") putEntry(tables, key, change.row);
    return copied(change.answer);
  } finally {
    tables.locks.release(key, holder);
  }
}

/** Stores or deletes a row. A body that its outcome pointed at before is looked at next. */
export function putEntry(tables: Tables, key: string, row: EntryRow | null): void {
  const before = tables.entries.get(key);
  const pointer = before?.outcome?.pointer ?? null;
  if (before !== undefined && pointer !== null && row?.outcome?.pointer !== pointer) {
    tables.bodies.set(pointer, { entryId: before.id, checkAt: tables.now() });
  }
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
