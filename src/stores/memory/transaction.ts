import type { NewMessage } from "../../core/message.ts";
import { StoreFailure } from "../../core/store.ts";
import type { EntryRow } from "./entry-row.ts";
import { arrive, copied, type EntryStep, entryKey, putEntry, type Tables } from "./tables.ts";

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
  readonly messages: NewMessage[];
  /** `failed`: a statement raised an error, and as in SQL nothing but a rollback is possible any more. */
  status: "open" | "failed" | "ended";
}

/** Begins a transaction. */
export function beginTransaction(tables: Tables): OpenTransaction {
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
    messages: [],
    status: "open",
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
 * A step inside a transaction: waits for the row, decides, and keeps the row's lock until the end where it wrote. A step
 * that matched nothing lets go of it, as an UPDATE of no rows does.
 */
export async function stageStep<R>(
  tables: Tables,
  open: OpenTransaction,
  id: Uint8Array,
  step: EntryStep<R>,
): Promise<R> {
  const key = entryKey(id);
  await arrive();
  assertOpen(open);
  try {
    const isNew = await tables.locks.acquire(key, open);
    assertStillOpen(tables, open);
    const change = step(visibleRow(tables, open, key), tables.now());
    if (change.kind === "write") open.entries.set(key, change.row);
    else if (isNew) tables.locks.release(key, open);
    return copied(change.answer);
  } catch (error) {
    if (open.status === "open") open.status = "failed";
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
  tables.messages.push(...open.messages);
}

/** Ends it, committed or not: what it staged is dropped, what it held is free. */
export function endTransaction(tables: Tables, open: OpenTransaction): void {
  open.status = "ended";
  tables.locks.releaseAll(open);
}
