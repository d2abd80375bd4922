import type { Completion } from "../../core/completion.ts";
import type { EntryState, NewEntry, StoredEntry } from "../../core/entry.ts";
import { sameDigest } from "../../core/fingerprint.ts";
import type { Intent, JournalRecord, NewIntent } from "../../core/intent.ts";
import type { SeenEntry, UnknownMark } from "../../core/store.ts";
import type { StoredOutcome } from "../../core/stored-outcome.ts";

/** An intent with the instant (store clock) at which it was last committed. */
export interface IntentRow extends NewIntent {
  readonly state: Intent["state"];
  readonly startedAt: number;
}

/** An entry with all that is recorded for it. Rows are never changed, only replaced; instants are the store clock's. */
export interface EntryRow extends NewEntry {
  readonly state: EntryState;
  readonly attempt: number;
  readonly recoveryPoint: string | null;
  /** Stays once it is set: an entry that ever needed recovery is never deleted by a release. */
  readonly reason: string | null;
  readonly outcome: StoredOutcome | null;
  readonly outcomeGone: boolean;
  readonly createdAt: number;
  readonly leaseUntil: number | null;
  /** Set by a suspension: nobody may take the entry sooner, whatever the lease says. */
  readonly notBefore: number | null;
  /** When the sweeper looks at an entry that is not in progress. */
  readonly sweepAt: number | null;
  /** From when on "nothing happened" may be believed of the entry itself. */
  readonly settlesAt: number | null;
  readonly completedAt: number | null;
  readonly expiresAt: number | null;
  readonly tombstoneUntil: number | null;
  readonly records: readonly JournalRecord[];
  readonly intents: readonly IntentRow[];
}

/** Neither suspended nor left to the sweeper: what a claim, a takeover and an end have in common. */
const NOT_WAITING = { notBefore: null, sweepAt: null, settlesAt: null };

/** A fresh claim. */
export function claimedRow(entry: NewEntry, leaseMs: number, now: number): EntryRow {
  return {
    ...entry,
    state: "in_progress",
    attempt: 1,
    recoveryPoint: null,
    reason: null,
    outcome: null,
    outcomeGone: false,
    createdAt: now,
    leaseUntil: now + leaseMs,
    ...NOT_WAITING,
    completedAt: null,
    expiresAt: null,
    tombstoneUntil: null,
    records: [],
    intents: [],
  };
}

/** Whether the fence owns a running entry. */
export function isOwned(row: EntryRow | null, fence: Uint8Array): row is EntryRow {
  return row !== null && row.state === "in_progress" && sameDigest(row.fence, fence);
}

/** Whether the fence may still end the entry: marked as unknown it keeps its fence, so a slow owner's answer counts. */
export function isEndable(row: EntryRow | null, fence: Uint8Array): row is EntryRow {
  return (
    row !== null && (row.state === "in_progress" || row.state === "needs_recovery") && sameDigest(row.fence, fence)
  );
}

/** Whether the identity may be used anew: retention is over and no tombstone stands. */
export function isForgettable(row: EntryRow, now: number): boolean {
  return row.expiresAt !== null && row.expiresAt <= now && (row.tombstoneUntil ?? row.expiresAt) <= now;
}

/** Whether what a taker saw is still so, and the entry may be taken. */
export function isTakeable(row: EntryRow | null, seen: SeenEntry, now: number): row is EntryRow {
  if (row === null || row.state !== seen.state || row.attempt !== seen.attempt) return false;
  if (!sameDigest(row.fence, seen.fence)) return false;
  return row.state !== "in_progress" || claimableAt(row) <= now;
}

/** When the next owner may come: after the lease and after a suspension. 0: there is neither. */
export function claimableAt(row: EntryRow): number {
  return Math.max(row.leaseUntil ?? 0, row.notBefore ?? 0);
}

/** The entry under its next owner. */
export function takenOver(row: EntryRow, fence: Uint8Array, leaseMs: number, now: number): EntryRow {
  const attempt = row.attempt + 1;
  return { ...row, state: "in_progress", attempt, fence, leaseUntil: now + leaseMs, ...NOT_WAITING };
}

/** The entry with its outcome; retention counts from now, not from the claim. */
export function completedRow(row: EntryRow, completion: Completion, now: number): EntryRow {
  const expiresAt = now + completion.retentionMs;
  return {
    ...row,
    state: completion.state,
    outcome: completion.outcome.content === null ? null : completion.outcome,
    outcomeGone: completion.outcome.content === null,
    leaseUntil: null,
    ...NOT_WAITING,
    completedAt: now,
    expiresAt,
    tombstoneUntil: completion.tombstoneMs > 0 ? expiresAt + completion.tombstoneMs : null,
  };
}

/** What is left when a claim is given back: nothing, or the row where anything could be known about it. */
export function releasedRow(row: EntryRow, keepRow: boolean, now: number): EntryRow | null {
  const isBlank = row.records.length === 0 && row.intents.length === 0;
  const isUntold = isBlank && row.attempt === 1 && row.reason === null && !keepRow;
  // Its owner was at its end: nothing of it is on its way any more.
  return isUntold ? null : { ...row, state: "released", leaseUntil: null, ...NOT_WAITING, settlesAt: now };
}

/** The entry of which nobody knows what happened; an answer given earlier is kept unless there is a newer one. */
export function unknownRow(row: EntryRow, mark: UnknownMark, now: number): EntryRow {
  const leaseEnd = claimableAt(row);
  return {
    ...row,
    state: "needs_recovery",
    reason: mark.reason,
    outcome: mark.provisional ?? row.outcome,
    leaseUntil: null,
    // The end of its last lease stays known: only long after it may "nothing happened" be believed.
    notBefore: leaseEnd || null,
    sweepAt: mark.sweepInMs === null ? null : now + mark.sweepInMs,
    settlesAt: mark.quietMs === null ? null : (leaseEnd || now) + mark.quietMs,
  };
}

/** The entry as a store hands it out, with what the clock says about it. */
export function storedEntry(row: EntryRow, now: number): StoredEntry {
  const { records: _records, intents: _intents, leaseUntil: _lease, notBefore: _wait, ...known } = row;
  const { sweepAt, settlesAt, tombstoneUntil, ...entry } = known;
  const expired = row.expiresAt !== null && row.expiresAt <= now;
  return {
    ...entry,
    createdAt: new Date(row.createdAt),
    completedAt: row.completedAt === null ? null : new Date(row.completedAt),
    expiresAt: row.expiresAt === null ? null : new Date(row.expiresAt),
    clock: {
      ageMs: now - row.createdAt,
      claimableInMs: claimableAt(row) === 0 ? 0 : claimableAt(row) - now,
      expired,
      tombstoned: expired && tombstoneUntil !== null && tombstoneUntil > now,
      sweepInMs: sweepAt === null ? null : sweepAt - now,
      settlesInMs: settlesAt === null ? null : settlesAt - now,
    },
  };
}
