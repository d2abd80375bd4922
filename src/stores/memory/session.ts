import { type Session, StoreFailure } from "../../core/store.ts";
import type { AdvisoryLocks } from "./advisory-locks.ts";
import { arrivalSession } from "./arrivals.ts";
import { claimedRow, completedRow, isEndable, storedEntry } from "./entry-row.ts";
import { completeStep, forgetExpiredStep } from "./entry-steps.ts";
import { sendMessage } from "./outbox.ts";
import { recordPhaseStep } from "./records.ts";
import { arrive, copied, entryKey, type Tables, write } from "./tables.ts";
import { assertOpen, type MemoryTransaction, type OpenTransaction, stageStep, visibleRow } from "./transaction.ts";

/** The statements that Oncekey adds to an open transaction. Time limits are accepted and not enforced. */
export function memorySession(tables: Tables, locks: AdvisoryLocks, open: OpenTransaction): Session<MemoryTransaction> {
  return {
    tx: open.tx,
    ...arrivalSession(tables, locks, open),
    async lock(id, lockDigest) {
      const identity = entryKey(id);
      const request = `${identity}:${entryKey(lockDigest)}`;
      await arrive();
      assertOpen(open);
      if (!locks.tryAcquire(request, open)) return "busy";
      return locks.tryAcquire(identity, open) ? "owner" : "mismatch";
    },
    async enter(id, fence) {
      const key = entryKey(id);
      await arrive();
      assertOpen(open);
      return isEndable(visibleRow(tables, open, key), fence);
    },
    async read(id) {
      const key = entryKey(id);
      await arrive();
      assertOpen(open);
      const row = visibleRow(tables, open, key);
      return row === null ? null : copied(storedEntry(row, tables.now()));
    },
    async forgetExpired(id) {
      await stageStep(tables, open, id, forgetExpiredStep());
    },
    insertFinished: (entry, completion) => insertFinished(tables, open, copied(entry), copied(completion)),
    recordPhase: (id, fence, record) => stageStep(tables, open, id, recordPhaseStep(copied(fence), copied(record))),
    complete: (id, fence, completion) => stageStep(tables, open, id, completeStep(copied(fence), copied(completion))),
    send: (message) => sendMessage(tables, open, copied(message)),
  };
}

type InsertFinished = Session<MemoryTransaction>["insertFinished"];

function insertFinished(tables: Tables, open: OpenTransaction, ...[entry, completion]: Parameters<InsertFinished>) {
  return stageStep(tables, open, entry.id, (row, now) => {
    if (row !== null) {
      throw new StoreFailure(
        "conflict",
        "The identity has an entry already: somebody else finished first. Rolled back.",
      );
    }
    return write(completedRow(claimedRow(entry, 0, now), completion, now), undefined);
  });
}
