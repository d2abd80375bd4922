import type { KnownDelivery, NewDelivery } from "../../core/delivery.ts";
import type { SequenceNumber } from "../../core/sequence.ts";
import { type ArrivalSession, StoreFailure } from "../../core/store.ts";
import type { AdvisoryLocks } from "./advisory-locks.ts";
import { arrive, copied, entryKey, type Tables } from "./tables.ts";
import { assertOpen, heldStep, type OpenTransaction, settle } from "./transaction.ts";

/** What a session adds for arrivals. Time limits are accepted and not enforced. */
export function arrivalSession(tables: Tables, locks: AdvisoryLocks, open: OpenTransaction): ArrivalSession {
  return {
    async tryLocks(digests) {
      const names = digests.map(entryKey);
      await arrive();
      assertOpen(open);
      return names.map((name) => locks.tryAcquire(name, open));
    },
    async deliveries(digests) {
      const keys = digests.map(entryKey);
      await arrive();
      assertOpen(open);
      return knownDeliveries(tables, keys, open);
    },
    async accept(deliveries) {
      for (const delivery of copied(deliveries)) await acceptOne(tables, open, delivery);
    },
    async forget(digests) {
      for (const digest of copied(digests)) await forgetOne(tables, open, entryKey(digest));
    },
    async producer(digest) {
      const key = entryKey(digest);
      await arrive();
      assertOpen(open);
      return copied(lastNumber(tables, open, key));
    },
    moveProducer(digest, producer, from, to) {
      const key = entryKey(digest);
      const row = copied({ producer, last: to });
      return heldStep(tables, open, `producer:${key}`, () => {
        if (!isSameNumber(lastNumber(tables, open, key), from)) throw fasterElsewhere();
        open.producers.set(key, row);
        return settle(undefined, true);
      });
    },
    moveSubject(digest, subject, version) {
      const key = entryKey(digest);
      const row = copied({ subject, version });
      return heldStep(tables, open, `subject:${key}`, () => {
        const last = open.subjects.get(key) ?? tables.subjects.get(key);
        const isNewer = last === undefined || version > last.version;
        if (isNewer) open.subjects.set(key, row);
        return settle(isNewer, isNewer);
      });
    },
  };
}

/** Those of the deliveries that are remembered; inside a transaction also its own. */
export function knownDeliveries(tables: Tables, keys: readonly string[], open?: OpenTransaction): KnownDelivery[] {
  const now = tables.now();
  const rows = [...new Set(keys)].map((key) => open?.deliveries.get(key) ?? tables.deliveries.get(key));
  return rows.flatMap((row) => {
    if (row === undefined || row.expiresAt <= now) return [];
    return [copied({ digest: row.digest, value: row.value, receivedAt: new Date(row.receivedAt) })];
  });
}

/** Deletes what need not be remembered any more; rows that a transaction holds are left for the next time. */
export function purgeDeliveries(tables: Tables, limit: number): number {
  const now = tables.now();
  const isOver = (key: string, expiresAt: number) => expiresAt <= now && !tables.locks.isLocked(deliveryLock(key));
  const over = [...tables.deliveries].filter(([key, { expiresAt }]) => isOver(key, expiresAt)).slice(0, limit);
  for (const [key] of over) tables.deliveries.delete(key);
  return over.length;
}

const deliveryLock = (key: string): string => `delivery:${key}`;

function acceptOne(tables: Tables, open: OpenTransaction, arrived: NewDelivery): Promise<void> {
  const key = entryKey(arrived.digest);
  return heldStep(tables, open, deliveryLock(key), (now) => {
    if (knownDeliveries(tables, [key], open).length > 0) throw fasterElsewhere();
    const { digest, delivery, value, keepMs } = arrived;
    open.deliveries.set(key, { digest, delivery, value, receivedAt: now, expiresAt: now + keepMs });
    return settle(undefined, true);
  });
}

/** As if its time were over: what is over is absent, and purged later. */
function forgetOne(tables: Tables, open: OpenTransaction, key: string): Promise<void> {
  return heldStep(tables, open, deliveryLock(key), (now) => {
    const row = open.deliveries.get(key) ?? tables.deliveries.get(key);
    if (row !== undefined) open.deliveries.set(key, { ...row, expiresAt: Math.min(row.expiresAt, now) });
    return settle(undefined, row !== undefined);
  });
}

function lastNumber(tables: Tables, open: OpenTransaction, key: string): SequenceNumber | null {
  return (open.producers.get(key) ?? tables.producers.get(key))?.last ?? null;
}

function isSameNumber(a: SequenceNumber | null, b: SequenceNumber | null): boolean {
  return a?.epoch === b?.epoch && a?.sequence === b?.sequence;
}

function fasterElsewhere(): StoreFailure {
  return new StoreFailure("conflict", "Another transaction has taken this arrival in meanwhile. Rolled back.");
}
