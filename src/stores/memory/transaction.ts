import { StoreFailure } from "../../core/store.ts";
import type { EntryRow } from "./entry-row.ts";
import {
  arrive,
  copied,
  type DeliveryRow,
  type EntryStep,
  entryKey,
  type MessageRow,
  type ProducerRow,
  putEntry,
  type SubjectRow,
  type Tables,
} from "./tables.ts";

/** What business code in unit tests writes with; gone when the transaction rolls back. */
export interface MemoryTransaction {
  /** Adds a row to a table, which exists as soon as it is named. */
  insert(table: string, row: object): Promise<void>;
  /** Committed rows and this transaction's own, in the order of their insertion. */
  rows<Row extends object = Record<string, unknown>>(table: string): Promise<Row[]>;
}

/** What one open transaction wrote and holds; nobody else sees it before the commit. */
export interface OpenTransaction {
  readonly tx: MemoryTransaction;
  readonly entries: Map<string, EntryRow | null>;
  readonly business: { readonly table: string; readonly row: object }[];
  readonly messages: Map<string, MessageRow>;
  readonly deliveries: Map<string, DeliveryRow>;
  readonly producers: Map<string, ProducerRow>;
  readonly subjects: Map<string, SubjectRow>;
  /** `failed`: a statement raised an error, and as in SQL nothing but a rollback is possible any more. */
  status: "open" | "failed" | "ended";
  /** Savepoints that are open: an error undoes what came after the last one, and lets go of nothing before it. */
  savepoints: number;
  /** Lets go of all that it holds. */
  letGo(): void;
  /** Whether it has staged a change of the entry. */
  changes(key: string): boolean;
}

/** Begins a transaction. `letGo` lets go of what it holds besides rows. */
export function beginTransaction(tables: Tables, letGo: (open: OpenTransaction) => void = () => {}): OpenTransaction {
  const open: OpenTransaction = {
    tx: {
      async insert(table, row) {
        const own = copied(row);
        await arrive();
        assertOpen(open);
        open.business.push({ table, row: own });
      },
      async rows<Row extends object>(table: string) {
        await arrive();
        assertOpen(open);
        const own = open.business.filter((insert) => insert.table === table).map((insert) => insert.row);
        return copied([...(tables.business.get(table) ?? []), ...own]) as Row[];
      },
    },
    entries: new Map(),
    business: [],
    messages: new Map(),
    deliveries: new Map(),
    producers: new Map(),
    subjects: new Map(),
    status: "open",
    savepoints: 0,
    changes: (key) => open.entries.has(key) && open.entries.get(key) !== (tables.entries.get(key) ?? null),
    letGo() {
      tables.locks.releaseAll(open);
      letGo(open);
    },
  };
  return open;
}

/** Raises unless statements can still run in the transaction. */
export function assertOpen(open: OpenTransaction | undefined): asserts open is OpenTransaction {
  if (open === undefined || open.status === "ended") {
    throw new StoreFailure(
      "transaction_lost",
      "The transaction is over, or belongs to another store. Nothing was written; use it only inside its own run.",
    );
  }
  if (open.status === "failed") {
    throw new StoreFailure("aborted", "A statement failed earlier in this transaction, so it can only roll back.");
  }
}

/** The row as the transaction sees it: its own writes over what is committed. */
export function visibleRow(tables: Tables, open: OpenTransaction, key: string): EntryRow | null {
  const staged = open.entries.get(key);
  return staged === undefined ? (tables.entries.get(key) ?? null) : staged;
}

/**
 * A step on an entry inside a transaction: waits for the row, decides, and keeps the row's lock until the end where it
 * wrote. A step that matched nothing lets go of it, as an UPDATE of no rows does.
 */
export function stageStep<R>(tables: Tables, open: OpenTransaction, id: Uint8Array, step: EntryStep<R>): Promise<R> {
  const key = entryKey(id);
  return heldStep(tables, open, key, (now) => {
    const change = step(visibleRow(tables, open, key), now);
    if (change.kind === "write") open.entries.set(key, change.row);
    return settle(change.answer, change.kind === "write");
  });
}

/** What a step under a lock gave, and whether the lock stays until the transaction ends. */
export interface Settled<R> {
  readonly answer: R;
  readonly holds: boolean;
}

/** Makes what {@link heldStep} wants of its step. */
export function settle<R>(answer: R, holds: boolean): Settled<R> {
  return { answer, holds };
}

/**
 * A step inside a transaction that waits for a lock (`null`: none) and then acts without an await. Its error fails the
 * transaction, as in SQL.
 */
export async function heldStep<R>(
  tables: Tables,
  open: OpenTransaction,
  lock: string | null,
  act: (now: number) => Settled<R>,
): Promise<R> {
  await arrive();
  assertOpen(open);
  let isNew = false;
  try {
    isNew = lock !== null && (await tables.locks.acquire(lock, open));
    assertStillOpen(tables, open);
    const { answer, holds } = act(tables.now());
    if (lock !== null && isNew && !holds) tables.locks.release(lock, open);
    return copied(answer);
  } catch (error) {
    if (open.status === "open") {
      open.status = "failed";
      // As a database does: the transaction is over but for its ROLLBACK, and nobody has to wait for that.
      if (open.savepoints === 0) open.letGo();
      else if (lock !== null && isNew) tables.locks.release(lock, open);
    }
    throw error;
  }
}

/** A statement that was still waiting when its transaction ended must not hold the row for ever. */
function assertStillOpen(tables: Tables, open: OpenTransaction): void {
  if (open.status === "ended") tables.locks.releaseAll(open);
  assertOpen(open);
}

/** Makes all of it visible in one step. Raises `aborted` where a statement had failed: then nothing is. */
export function commitTransaction(tables: Tables, open: OpenTransaction): void {
  if (open.status === "failed") {
    throw new StoreFailure(
      "aborted",
      "A statement in the transaction failed and its error was swallowed: everything was rolled back.",
    );
  }
  for (const [key, row] of open.entries) putEntry(tables, key, row);
  for (const { table, row } of open.business) {
    tables.business.set(table, [...(tables.business.get(table) ?? []), row]);
  }
  put(tables.messages, open.messages);
  put(tables.deliveries, open.deliveries);
  put(tables.producers, open.producers);
  put(tables.subjects, open.subjects);
}

function put<Row>(committed: Map<string, Row>, own: ReadonlyMap<string, Row>): void {
  for (const [key, row] of own) committed.set(key, row);
}

/** Ends it, committed or not: what it staged is dropped, what it held is free. */
export function endTransaction(open: OpenTransaction): void {
  open.status = "ended";
  open.letGo();
}
