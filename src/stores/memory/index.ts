import type { Delivery } from "../../core/delivery.ts";
import { type Random, systemRandom } from "../../core/random.ts";
import type { Session, Store, StoreTraits, SweepTarget } from "../../core/store.ts";
import { type AdvisoryLocks, advisoryLocks } from "./advisory-locks.ts";
import { knownDeliveries, purgeDeliveries } from "./arrivals.ts";
import { memoryBodies } from "./bodies.ts";
import { storedEntry } from "./entry-row.ts";
import * as steps from "./entry-steps.ts";
import { memoryOutbox, sendMessage } from "./outbox.ts";
import { cancelIntentStep, journalOf, openIntentStep, recordCallStep } from "./records.ts";
import { resolveStep } from "./resolve.ts";
import { memorySession } from "./session.ts";
import { type Slots, slots } from "./slots.ts";
import { announceTargets, markLapsedEntries, purgeEntries, takeDueEntries } from "./sweep.ts";
import {
  arrive,
  commitStep,
  copied,
  emptyTables,
  entryKey,
  type MessageRow,
  type ResolutionRow,
  rememberTables,
  type Tables,
} from "./tables.ts";
import {
  assertOpen,
  beginTransaction,
  commitTransaction,
  endTransaction,
  type MemoryTransaction,
  type OpenTransaction,
  stageStep,
} from "./transaction.ts";
import { memoryWithin } from "./within.ts";

export { fromTransaction, type OpenedTransaction } from "../../core/opened-transaction.ts";
export type { MessageRow, ResolutionRow } from "./tables.ts";
export type { MemoryTransaction } from "./transaction.ts";

/** How a memory store is made. */
export interface MemoryStoreOptions {
  /** The store's clock, in milliseconds since the epoch; a test may move it. Default: `Date.now`. */
  readonly clock?: () => number;
  /** Pretends a pool of this size: transactions are held to one fewer, at least one. Default: no limit. */
  readonly connections?: number;
  /** Where the fences of sweepers and relays come from, for runs that must be repeatable. Default: the system's. */
  readonly random?: Random;
}

/** A store that also shows what was committed. */
export interface MemoryStore extends Store<MemoryTransaction> {
  /** The committed rows of a table, in the order of their commit. */
  rows<Row extends object = Record<string, unknown>>(table: string): Row[];
  /** The committed outbox rows with their state, in the order of their commit. */
  messages(): MessageRow[];
  /** The deliveries that are remembered now. */
  accepted(): Delivery[];
  /** What operators decided, oldest first. */
  resolutions(): ResolutionRow[];
  /** What sweepers said that they can take up, with the instant (store clock) of the last time. */
  announced(): (SweepTarget & { readonly seenAt: number })[];
}

/**
 * The reference store: everything the port promises, in one process and gone with it. For unit tests; nothing here
 * survives a crash or is shared between processes. Every method yields before it acts and then acts in one step, so that
 * a given order of calls always ends the same way.
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  const connections = options.connections ?? null;
  const tables = emptyTables(options.clock ?? Date.now, options.random ?? systemRandom);
  const traits: StoreTraits = { connections, renews: connections === null || connections > 1, abandons: true };
  const store: MemoryStore = {
    name: "memory",
    traits,
    start: arrive,
    async clockMs() {
      await arrive();
      return tables.now();
    },
    ...entryStatements(tables),
    ...recordStatements(tables),
    ...transactionStatements(tables, slots(connections === null ? Infinity : Math.max(1, connections - 1))),
    ...sweepStatements(tables),
    ...arrivalStatements(tables),
    outbox: memoryOutbox(tables),
    bodies: memoryBodies(tables),
    ...shown(tables),
  };
  return rememberTables(store, tables);
}

function shown(tables: Tables): Omit<MemoryStore, keyof Store> {
  const isKnown = ({ expiresAt }: { expiresAt: number }) => expiresAt > tables.now();
  return {
    rows: <Row extends object>(table: string) => copied(tables.business.get(table) ?? []) as Row[],
    messages: () => copied([...tables.messages.values()]),
    accepted: () => copied([...tables.deliveries.values()].filter(isKnown).map(({ delivery }) => delivery)),
    resolutions: () => copied(tables.resolutions),
    announced: () => copied([...tables.targets.values()]),
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
    claim: (entry, leaseMs) =>
      commitStep(tables, entry.id, steps.claimStep(copied(entry), leaseMs), { onlyInserts: true }),
    takeOver: (id, seen, fence, leaseMs) =>
      commitStep(tables, id, steps.takeOverStep(copied(seen), copied(fence), leaseMs)),
    renew: (id, fence, leaseMs) => commitStep(tables, id, steps.renewStep(copied(fence), leaseMs)),
    forgetExpired: (id) => commitStep(tables, id, steps.forgetExpiredStep()),
    release: (id, fence, keepRow) => commitStep(tables, id, steps.releaseStep(copied(fence), keepRow)),
    suspend: (id, fence, waitMs) => commitStep(tables, id, steps.suspendStep(copied(fence), waitMs)),
    markUnknown: (id, fence, mark) => commitStep(tables, id, steps.markUnknownStep(copied(fence), copied(mark))),
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

function transactionStatements(
  tables: Tables,
  free: Slots,
): Statements<"running" | "transaction" | "within" | "owns" | "send"> {
  const locks = advisoryLocks();
  const known = new WeakMap<MemoryTransaction, OpenTransaction>();
  const { within, ended } = memoryWithin({ tables, locks, opened: (tx) => known.get(tx) });
  return {
    async running(id) {
      await arrive();
      return locks.isHeld(entryKey(id));
    },
    within,
    async transaction(body) {
      await arrive();
      await free.enter();
      const open = beginTransaction(tables, locks.releaseAll);
      known.set(open.tx, open);
      try {
        return await runTransaction(tables, locks, open, body);
      } finally {
        ended(open);
        free.leave();
      }
    },
    async owns(tx, id, fence) {
      const open = known.get(tx);
      assertOpen(open);
      return await stageStep(tables, open, id, steps.ownsStep(copied(fence)));
    },
    async send(tx, message) {
      const open = known.get(tx);
      assertOpen(open);
      await sendMessage(tables, open, copied(message));
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
    endTransaction(open);
  }
}

function sweepStatements(
  tables: Tables,
): Statements<"takeDue" | "markLapsed" | "announce" | "purge" | "maintain" | "resolve"> {
  return {
    async takeDue(target, limit, leaseMs) {
      const own = copied(target);
      await arrive();
      return takeDueEntries(tables, own, limit, leaseMs);
    },
    async markLapsed(target, mark, limit) {
      const own = copied({ target, mark });
      await arrive();
      return markLapsedEntries(tables, own.target, own.mark, limit);
    },
    async announce(targets) {
      const own = copied(targets);
      await arrive();
      announceTargets(tables, own);
    },
    // Nothing to look after.
    maintain: async () => false,
    async purge(limit) {
      await arrive();
      return purgeEntries(tables, limit);
    },
    resolve: (id, resolution) => commitStep(tables, id, resolveStep(tables, copied(id), copied(resolution))),
  };
}

function arrivalStatements(tables: Tables): Statements<"deliveries" | "purgeDeliveries"> {
  return {
    async deliveries(digests) {
      const keys = digests.map(entryKey);
      await arrive();
      return knownDeliveries(tables, keys);
    },
    async purgeDeliveries(limit) {
      await arrive();
      return purgeDeliveries(tables, limit);
    },
  };
}
