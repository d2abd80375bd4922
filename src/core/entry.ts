import type { Match } from "./fingerprint.ts";
import type { StoredOutcome } from "./stored-outcome.ts";

/** How an operation commits; stored with the entry, so that no other kind ever takes it over. */
export type RunKind = "transaction" | "phases" | "capture";

/** The states of a stored entry. */
export type EntryState = "in_progress" | "needs_recovery" | "succeeded" | "failed" | "released";

/** Every state, in the order of an entry's life. */
export const ENTRY_STATES: readonly EntryState[] = ["in_progress", "needs_recovery", "released", "succeeded", "failed"];

/** What a claim writes: who, what, and how to recognise a retry. */
export interface NewEntry {
  readonly id: Uint8Array;
  readonly tenant: string;
  readonly client: string | null;
  readonly operation: string;
  /** The key as stored: raw, or digest and prefix (see `storedKey`). */
  readonly key: string;
  readonly runKind: RunKind;
  readonly operationVersion: number;
  readonly fingerprint: Uint8Array;
  readonly wireDigest: Uint8Array | null;
  /** Random owner token, 16 bytes. */
  readonly fence: Uint8Array;
  /** Random, 16 bytes, kept for the entry's whole life: what `op.uuid()` derives from. */
  readonly seed: Uint8Array;
  /** The validated input (value codec), for a resume without a client; `null` where the operation does not store it. */
  readonly input: Uint8Array | null;
  /** The declared context (value codec): ids the worker needs, never secrets. */
  readonly context: Uint8Array | null;
  /** What ties the request to its caller's logs (`traceparent`, else `X-Request-Id`); `null` where it brought none. */
  readonly correlation: string | null;
}

/** What the database clock said in the statement that read the row. Nothing is ever compared with a local clock. */
export interface EntryClock {
  /** Milliseconds since the entry was first claimed. */
  readonly ageMs: number;
  /**
   * Milliseconds until the entry may be claimed by somebody else (lease and `not_before`); 0 or less: now. In
   * `needs_recovery` it counts from the end of the last lease: how negative it is tells how long the owner is gone.
   */
  readonly claimableInMs: number;
  /** Retention is over. */
  readonly expired: boolean;
  /** Retention is over but a tombstone still stands: a late retry is refused, not run. */
  readonly tombstoned: boolean;
  /** Milliseconds until the sweeper looks at an entry that is not in progress; `null`: only a retry or a person does. */
  readonly sweepInMs: number | null;
  /** Milliseconds until "nothing happened" may be believed of the entry itself; `null`: nobody can say. */
  readonly settlesInMs: number | null;
}

/** A stored entry, as a store returns it. */
export interface StoredEntry extends NewEntry {
  readonly state: EntryState;
  readonly attempt: number;
  /** Name of the last committed phase or call, or `null`. */
  readonly recoveryPoint: string | null;
  /** Why the entry needs recovery. */
  readonly reason: string | null;
  /** The outcome; in `needs_recovery` a provisional one (the 5xx of a captured handler). */
  readonly outcome: StoredOutcome | null;
  /** The outcome was stored once, its content is no longer kept. */
  readonly outcomeGone: boolean;
  readonly createdAt: Date;
  readonly completedAt: Date | null;
  readonly expiresAt: Date | null;
  readonly clock: EntryClock;
}

/** What an entry means for a request that brings its key. */
export type Decision =
  | { readonly kind: "absent"; readonly expired: boolean }
  | { readonly kind: "replay"; readonly outcome: StoredOutcome }
  | { readonly kind: "gone"; readonly state: EntryState }
  | { readonly kind: "mismatch"; readonly state: EntryState }
  | { readonly kind: "version_unknown" }
  | { readonly kind: "busy"; readonly retryAfterMs: number }
  | { readonly kind: "resume" }
  | { readonly kind: "abandoned" }
  | {
      readonly kind: "unknown";
      readonly state: EntryState;
      readonly reason: string;
      readonly provisional: StoredOutcome | null;
      readonly retryAfterMs: number;
    };

/** What this process can do with an entry of its operation. */
export interface Taker {
  readonly runKind: RunKind;
  readonly version: number;
  /** `runAgain`: the tombstone of a failure refuses nothing, and is only there to tell the next run from it. Default: replay. */
  readonly rules?: { readonly afterFailure: "replay" | "runAgain" };
}

const UNKNOWN_RETRY_MS = 5_000;
/** A lease says when a dead owner may be succeeded; a live one is mostly done much sooner. */
const BUSY_RETRY_MS = 2_000;

/**
 * The one rule of what happens to a request whose key has an entry. Pure: the match was computed by the caller, time by
 * the database. `resume` means "may try to take over" and `abandoned` "its owner is gone and only a recovery can tell
 * what it did"; both are then decided by a compare-and-set in the store.
 */
export function decide(entry: StoredEntry | null, match: Match, taker: Taker): Decision {
  if (entry === null) return { kind: "absent", expired: false };
  const finished = entry.state === "succeeded" || entry.state === "failed";
  const isForgotten = taker.rules?.afterFailure === "runAgain" && wasForgotten(entry);
  if (finished && entry.clock.expired && (isForgotten || !entry.clock.tombstoned))
    return { kind: "absent", expired: true };
  if (match === "version_unknown") return { kind: "version_unknown" };
  if (match === "different") return { kind: "mismatch", state: entry.state };
  if (finished) return decideFinished(entry);
  if (entry.state === "needs_recovery" && !isAskable(entry)) return unknown(entry, entry.reason ?? "needs recovery");
  return decideUnfinished(entry, taker);
}

/** A failure that was over when it was stored. One that a person stored for a time, or with a tombstone, is kept as that says. */
function wasForgotten({ state, completedAt, expiresAt }: StoredEntry): boolean {
  return state === "failed" && completedAt !== null && expiresAt?.getTime() === completedAt.getTime();
}

function decideFinished(entry: StoredEntry): Decision {
  const gone = entry.outcomeGone || entry.clock.expired || entry.outcome === null;
  return gone || entry.outcome === null
    ? { kind: "gone", state: entry.state }
    : { kind: "replay", outcome: entry.outcome };
}

const LEFT = "gave_up: left in progress";

/** Why an entry needs recovery whose owners were gone, each without a word, so many times: a run that kills its process. */
export function leftInProgress(attempts: number): string {
  return `${LEFT} by ${attempts} attempts`;
}

/**
 * Whether a retry may go on with an entry that was given up, as the sweeper does when its time comes: something can still
 * be found out, and the last lease is over. A run that kills its process waits for that time whoever comes.
 */
function isAskable({ runKind, reason, clock }: StoredEntry): boolean {
  if (runKind !== "phases" || clock.sweepInMs === null || clock.claimableInMs > 0) return false;
  return !reason?.startsWith(LEFT) || clock.sweepInMs <= 0;
}

function decideUnfinished(entry: StoredEntry, taker: Taker): Decision {
  if (entry.clock.claimableInMs > 0)
    return { kind: "busy", retryAfterMs: Math.min(entry.clock.claimableInMs, BUSY_RETRY_MS) };
  if (entry.runKind !== taker.runKind) return unknown(entry, `left by ${entry.runKind} code`);
  // A rollout in progress: this instance is the old one and must not judge what newer code left behind.
  if (entry.operationVersion > taker.version) return unknown(entry, "left by a newer version of the operation");
  if (entry.state === "in_progress" && entry.runKind === "capture") return { kind: "abandoned" };
  return { kind: "resume" };
}

function unknown(entry: StoredEntry, reason: string): Decision {
  const retryAfterMs = Math.max(entry.clock.claimableInMs, UNKNOWN_RETRY_MS);
  return { kind: "unknown", state: entry.state, reason, provisional: entry.outcome, retryAfterMs };
}
