import type { Completion } from "../../core/completion.ts";
import type { NewEntry, StoredEntry } from "../../core/entry.ts";
import type { SeenEntry, UnknownMark } from "../../core/store.ts";
import {
  claimedRow,
  completedRow,
  type EntryRow,
  isEndable,
  isForgettable,
  isOwned,
  isTakeable,
  releasedRow,
  storedEntry,
  takenOver,
  unknownRow,
} from "./entry-row.ts";
import { type EntryStep, keep, write } from "./tables.ts";

/** Inserts the claim; one that was sent before with the same fence, and whose answer was lost, is claimed again. */
export function claimStep(entry: NewEntry, leaseMs: number): EntryStep<StoredEntry | null> {
  return (row, now) => {
    if (row !== null) return keep(isOwned(row, entry.fence) ? storedEntry(row, now) : null);
    const claimed = claimedRow(entry, leaseMs, now);
    return write(claimed, storedEntry(claimed, now));
  };
}

/** Compare-and-set to the next owner; sent again, because its answer was lost, it is the same takeover. */
export function takeOverStep(seen: SeenEntry, fence: Uint8Array, leaseMs: number): EntryStep<StoredEntry | null> {
  return (row, now) => {
    if (isOwned(row, fence)) return keep(storedEntry(row, now));
    if (!isTakeable(row, seen, now)) return keep(null);
    const taken = takenOver(row, fence, leaseMs, now);
    return write(taken, storedEntry(taken, now));
  };
}

/** Counts the lease of an owned entry from now. */
export function renewStep(fence: Uint8Array, leaseMs: number): EntryStep<boolean> {
  return owned(fence, (row, now) => ({ ...row, leaseUntil: now + leaseMs }));
}

/** Ends the lease, and keeps everybody away until `waitMs` are over. */
export function suspendStep(fence: Uint8Array, waitMs: number): EntryStep<boolean> {
  return owned(fence, (row, now) => ({ ...row, leaseUntil: null, notBefore: now + waitMs }));
}

/** Gives the claim back. */
export function releaseStep(fence: Uint8Array, keepRow: boolean): EntryStep<boolean> {
  return endable(fence, (row, now) => releasedRow(row, keepRow, now));
}

/** Marks that nobody knows what happened. */
export function markUnknownStep(fence: Uint8Array, mark: UnknownMark): EntryStep<boolean> {
  return endable(fence, (row, now) => unknownRow(row, mark, now));
}

/** Stores the outcome. */
export function completeStep(fence: Uint8Array, completion: Completion): EntryStep<boolean> {
  return endable(fence, (row, now) => completedRow(row, completion, now));
}

/** Holds the row of an owned entry, without changing it. */
export function ownsStep(fence: Uint8Array): EntryStep<boolean> {
  return owned(fence, (row) => row);
}

/** Removes an entry whose retention is over. That of a failure is only asked for where failures are forgotten. */
export function forgetExpiredStep(): EntryStep<boolean> {
  return (row, now) => {
    const isOver = row !== null && isForgettable(row.state === "failed" ? { ...row, tombstoneUntil: null } : row, now);
    return isOver ? write(null, true) : keep(false);
  };
}

function owned(fence: Uint8Array, next: (row: EntryRow, now: number) => EntryRow | null): EntryStep<boolean> {
  return (row, now) => (isOwned(row, fence) ? write(next(row, now), true) : keep(false));
}

function endable(fence: Uint8Array, next: (row: EntryRow, now: number) => EntryRow | null): EntryStep<boolean> {
  return (row, now) => (isEndable(row, fence) ? write(next(row, now), true) : keep(false));
}
