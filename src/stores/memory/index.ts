import type { NewMessage } from "../../core/message.ts";
import type { Session, Store, StoreTraits } from "../../core/store.ts";
import { type AdvisoryLocks, advisoryLocks } from "./advisory-locks.ts";
import { storedEntry } from "./entry-row.ts";
import * as steps from "./entry-steps.ts";
import { cancelIntentStep, journalOf, openIntentStep, recordCallStep } from "./records.ts";
import { memorySession } from "./session.ts";
import { type Slots, slots } from "./slots.ts";
import { lapsedEntries, purgeEntries } from "./sweep.ts";
import { arrive, commitStep, copied, emptyTables, entryKey, type Tables } from "./tables.ts";
import {
  assertOpen,
  beginTransaction,
  commitTransaction,
  endTransaction,
  type MemoryTransaction,
  type OpenTransaction,
  stageStep,
} from "./transaction.ts";

export type { MemoryTransaction } from "./transaction.ts";

/** How a memory store is made. */
export interface MemoryStoreOptions {
  /** The store's clock, in milliseconds since the epoch; a test may move it. Default: `Date.now`. */
  readonly clock?: () => number;
  /** Pretends a pool of this size: transactions are held to one fewer, at least one. Default: no limit. */
  readonly connections?: number;
}

/** A store that also shows what was committed. */
export interface MemoryStore extends Store<MemoryTransaction> {
  /** The committed rows of a table, in the order of their commit. */
  rows<Row extends object = Record<string, unknown>>(table: string): Row[];
  /** The committed outbox messages, in the order of their commit. */
  messages(): NewMessage[];
}

/**
 * The reference store: everything the port promises, in one process and gone with it. For unit tests; nothing here
 * survives a crash or is shared between processes. Every method yields before it acts and then acts in one step, so that
 * a given order of calls always ends the same way.
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  const connections = options.connections ?? null;
  const tables = emptyTables(options.clock ?? Date.now);
  const traits: StoreTraits = { connections, renews: connections === null || connections > 1, abandons: true };
  return {
    name: "memory",
    traits,
    start: arrive,
    ...entryStatements(tables),
    ...recordStatements(tables),
    ...transactionStatements(tables, slots(connections === null ? Infinity : Math.max(1, connections - 1))),
    ...sweepStatements(tables),
    rows: <Row extends object>(table: string) => copied(tables.business.get(table) ?? []) as Row[],
    messages: () => copied(tables.messages),
  };
}

type Statements<Name extends keyof Store> = Pick<Store<MemoryTransaction>, Name>;

function entryStatements(
  tables: Tables,
): Statements<
  "read" | "claim" | "takeOver" | "renew" | "forgetExpired" | "release" | "suspend" | "markUnknown" | "complete"
> {
  return {
    async read(id) {
      const key = entryKey(id);
      await arrive();
      const row = tables.entries.get(key);
      return row === undefined ? null : copied(storedEntry(row, tables.now()));
    },
    claim: (entry, leaseMs) => commitStep(tables, entry.id, steps.claimStep(copied(entry), leaseMs)),
    takeOver: (id, seen, fence, leaseMs) =>
      commitStep(tables, id, steps.takeOverStep(copied(seen), copied(fence), leaseMs)),
    renew: (id, fence, leaseMs) => commitStep(tables, id, steps.renewStep(copied(fence), leaseMs)),
    forgetExpired: (id) => commitStep(tables, id, steps.forgetExpiredStep()),
    release: (id, fence, keepRow) => commitStep(tables, id, steps.releaseStep(copied(fence), keepRow)),
    suspend: (id, fence, waitMs) => commitStep(tables, id, steps.suspendStep(copied(fence), waitMs)),
    markUnknown: (id, fence, reason, provisional) =>
      commitStep(tables, id, steps.markUnknownStep(copied(fence), reason, copied(provisional))),
    complete: (id, fence, completion) => commitStep(tables, id, steps.completeStep(copied(fence), copied(completion))),
  };
}

function recordStatements(tables: Tables): Statements<"journal" | "openIntent" | "cancelIntent" | "recordCall"> {
  return {
    async journal(id) {
      const key = entryKey(id);
      await arrive();
      return copied(journalOf(tables.entries.get(key), tables.now()));
    },
    openIntent: (id, fence, intent) => commitStep(tables, id, openIntentStep(copied(fence), copied(intent))),
    cancelIntent: (id, fence, call, generation) =>
      commitStep(tables, id, cancelIntentStep(copied(fence), call, generation)),
    recordCall: (id, fence, record) => commitStep(tables, id, recordCallStep(copied(fence), copied(record))),
  };
}

function transactionStatements(tables: Tables, free: Slots): Statements<"transaction" | "owns"> {
  const locks = advisoryLocks();
  const known = new WeakMap<MemoryTransaction, OpenTransaction>();
  return {
    async transaction(body) {
      await arrive();
      await free.enter();
      const open = beginTransaction(tables);
      known.set(open.tx, open);
      try {
        return await runTransaction(tables, locks, open, body);
      } finally {
        free.leave();
      }
    },
    async owns(tx, id, fence) {
      const open = known.get(tx);
      assertOpen(open);
      return await stageStep(tables, open, id, steps.ownsStep(copied(fence)));
    },
  };
}

async function runTransaction<R>(
  tables: Tables,
  locks: AdvisoryLocks,
  open: OpenTransaction,
  body: (session: Session<MemoryTransaction>) => Promise<R>,
): Promise<R> {
  try {
    const result = await body(memorySession(tables, locks, open));
    await arrive();
    commitTransaction(tables, open);
    return result;
  } finally {
    locks.releaseAll(open);
    endTransaction(tables, open);
  }
}

function sweepStatements(tables: Tables): Statements<"lapsed" | "purge"> {
  return {
    async lapsed(targets, limit) {
      await arrive();
      return lapsedEntries(tables, targets, limit);
    },
    async purge(limit) {
      await arrive();
      return purgeEntries(tables, limit);
    },
  };
}
