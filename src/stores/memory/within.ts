import { OncekeyError } from "../../core/errors.ts";
import type { Session, Store, WithinTransaction } from "../../core/store.ts";
import type { AdvisoryLocks } from "./advisory-locks.ts";
import { storedEntry } from "./entry-row.ts";
import { memorySession } from "./session.ts";
import { arrive, copied, entryKey, type Tables } from "./tables.ts";
import { type MemoryTransaction, type OpenTransaction, visibleRow } from "./transaction.ts";

/** What the store's `within` needs. */
export interface WithinParts {
  readonly tables: Tables;
  readonly locks: AdvisoryLocks;
  /** The transaction behind what business code has; `undefined`: none of this store's. */
  opened(tx: MemoryTransaction): OpenTransaction | undefined;
}

/** Attempts inside one transaction. */
interface Inside {
  /** Who holds their locks: each attempt for itself, so that it can let go of them alone. */
  readonly holders: object[];
  isInUse: boolean;
}

const NONE = "no transaction is open there";

/** Makes the store's `within`, and what ends with the caller's transaction: the locks that were left to it. */
export function memoryWithin(parts: WithinParts) {
  const insides = new WeakMap<OpenTransaction, Inside>();
  const within: Store<MemoryTransaction>["within"] = (tx) => {
    const open = typeof tx === "object" && tx !== null ? parts.opened(tx) : undefined;
    if (open === undefined) throw unusable(NONE);
    const inside = insides.get(open) ?? { holders: [], isInUse: false };
    insides.set(open, inside);
    return { transaction: runner(parts, open, inside), read: (id) => readWithin(parts, open, id) };
  };
  const ended = (open: OpenTransaction) => {
    for (const holder of insides.get(open)?.holders ?? []) parts.locks.releaseAll(holder);
  };
  return { within, ended };
}

async function readWithin({ tables }: WithinParts, open: OpenTransaction, id: Uint8Array) {
  const key = entryKey(id);
  await arrive();
  checkUsable(open);
  const row = visibleRow(tables, open, key);
  return row === null ? null : copied(storedEntry(row, tables.now()));
}

function runner(
  { tables, locks }: WithinParts,
  open: OpenTransaction,
  inside: Inside,
): WithinTransaction<MemoryTransaction>["transaction"] {
  // What this run has written before, it may have written.
  let hadLocks = false;
  return async (body) => {
    await arrive();
    checkUsable(open);
    if (inside.isInUse) throw unusable("another run is going on in it");
    inside.isInUse = true;
    const holder = {};
    const session = memorySession(tables, { ...locks, tryAcquire: (name) => locks.tryAcquire(name, holder) }, open);
    const lock: Session<MemoryTransaction>["lock"] = async (...what) => {
      await arrive();
      if (!hadLocks && hasWritten(open, inside)) throw unusable("it has written already, or has run another key");
      const result = await session.lock(...what);
      if (result === "owner") inside.holders.push(holder);
      hadLocks ||= result === "owner";
      return result;
    };
    const undo = savepoint(open);
    open.savepoints += 1;
    try {
      return await body({ ...session, lock });
    } catch (error) {
      undo();
      locks.releaseAll(holder);
      throw error;
    } finally {
      open.savepoints -= 1;
      inside.isInUse = false;
    }
  };
}

function checkUsable({ status }: OpenTransaction): void {
  if (status === "ended") throw unusable(NONE);
  if (status === "failed") throw unusable("a statement in it has failed already");
}

function hasWritten(open: OpenTransaction, { holders }: Inside): boolean {
  const { business, entries, messages, deliveries, producers, subjects } = open;
  const written = [entries, messages, deliveries, producers, subjects].some(({ size }) => size > 0);
  return written || business.length > 0 || holders.length > 0;
}

/** Remembers what the transaction has written, and gives the way back to it. Row locks stay until its end. */
function savepoint(open: OpenTransaction): () => void {
  const rows = open.business.length;
  const maps: readonly Map<string, unknown>[] = [
    ...[open.entries, open.messages, open.deliveries, open.producers, open.subjects],
  ];
  const before = maps.map((map) => new Map(map));
  return () => {
    if (open.status === "failed") open.status = "open";
    open.business.splice(rows);
    maps.forEach((map, index) => {
      map.clear();
      for (const [key, row] of before[index] ?? []) map.set(key, row);
    });
  };
}

function unusable(why: string): OncekeyError {
  return new OncekeyError(
    "oncekey_transaction_unusable",
    `fromTransaction was given a transaction that cannot be used: ${why}. The operation did not run. Open one for this key alone and call once.run() in it before anything else.`,
  );
}
