import { StoreFailure } from "../core/store.ts";
import { type Attempt, Halted, type TimedIntent } from "./attempt.ts";
import { done, growingPause, maxAttemptsOf, type Turn } from "./context.ts";
import { failureResult, withState } from "./failures.ts";
import type { AnyResult } from "./run-result.ts";
import { BodyNotStored } from "./stored-body.ts";

const UNKNOWN_RETRY_MS = 5_000;

/** What the end of an attempt made of its entry. */
type Left = "suspended" | "given_up" | "gone";

/** Leaves the entry in the state that the attempt's end calls for, and says so. Raises the operation's own error. */
export async function endAttempt(attempt: Attempt, error: unknown): Promise<Turn> {
  // A call that was left un-awaited must not be sent for an entry that is about to be given back.
  attempt.lease.lose("the attempt is over");
  // Its failure is our doing and must not end the process.
  for (const step of attempt.steps) step.catch(() => {});
  return error instanceof Halted ? endHalted(attempt, error) : endThrown(attempt, error);
}

const claimed = (result: AnyResult): AnyResult => withState(result, "in_progress");

async function endThrown(attempt: Attempt, error: unknown): Promise<Turn> {
  const result = failureResult(error);
  // The lease is lost or the store is: nothing may be written any more, the lease lapses by itself.
  if (result !== null && result.kind !== "contention") return done(claimed(result));
  const { settings } = attempt.context;
  // If even that fails the lease lapses by itself; the caller must see why the operation ended.
  const isFree = await giveBack(
    attempt,
    result === null ? `the operation threw (${nameOf(error)})` : "contention",
  ).catch((failure: unknown) => settings.onError(failure, { operation: attempt.operation.name, at: "give back" }));
  if (result !== null) return done(isFree ? result : claimed(result));
  throw error;
}

async function endHalted(attempt: Attempt, { reason, cause }: Halted): Promise<Turn> {
  switch (reason.kind) {
    case "failed": {
      let isFree = false;
      if (reason.result.kind === "contention") isFree = await giveBack(attempt, "contention");
      // The store itself is there: an attempt that is left without a word would count as one that killed its process.
      if (cause instanceof BodyNotStored) isFree = await giveBack(attempt, "the body store did not take the outcome");
      return done(isFree ? reason.result : claimed(reason.result));
    }
    case "suspend": {
      const left = await leave(attempt, reason.waitMs, reason.reason);
      return unknown(left, left === "given_up" ? givenUp(reason.reason) : reason.reason, reason.waitMs);
    }
    case "recovery":
      return unknown(await mark(attempt, reason.reason, reason.sweepInMs ?? null), reason.reason, UNKNOWN_RETRY_MS);
    case "threw":
      return endThrown(attempt, reason.error);
  }
}

function unknown(left: Left, reason: string, waitMs: number): Turn {
  if (left === "gone") return done({ kind: "lease_lost", retryAfterMs: 1_000 });
  const state = left === "suspended" ? "in_progress" : "needs_recovery";
  const retryAfterMs = left === "suspended" ? waitMs : UNKNOWN_RETRY_MS;
  return done({ kind: "unknown", state, reason, provisional: null, retryAfterMs });
}

/**
 * Lets the next attempt have the entry. Where something is recorded or may have been sent it stays in progress, claimable
 * at once the first time and after a growing pause later: a retry goes on, and the sweeper does if no client comes back.
 * Tells whether nothing is left of it.
 */
async function giveBack(attempt: Attempt, why: string): Promise<boolean> {
  const { context, entry, lease } = attempt;
  const open = openIntents(attempt);
  const hasBegun = attempt.sent || attempt.active !== null || attempt.position > 0 || entry.attempt > 1;
  if (open.length === 0 && !hasBegun) {
    await context.store.release(lease.id, lease.fence, false);
    return true;
  }
  const restMs = entry.attempt === 1 && open.length === 0 ? 0 : growingPause(Math.max(1, entry.attempt - 1));
  await leave(attempt, Math.max(restMs, ...open.map((intent) => settlesIn(attempt, intent))), why);
  return false;
}

/** Keeps the entry for another attempt after `waitMs`; after too many of them it is shown to operators as well. */
async function leave(attempt: Attempt, waitMs: number, why: string): Promise<Left> {
  const { context, operation, entry, lease } = attempt;
  if (entry.attempt >= maxAttemptsOf(operation)) {
    return mark(attempt, givenUp(why), Math.max(waitMs, growingPause(entry.attempt)));
  }
  return (await context.store.suspend(lease.id, lease.fence, Math.ceil(waitMs))) ? "suspended" : "gone";
}

async function mark(attempt: Attempt, reason: string, sweepInMs: number | null): Promise<Left> {
  const { context, lease } = attempt;
  const unknown = { reason, provisional: null, sweepInMs: sweepInMs === null ? null : Math.ceil(sweepInMs) };
  const kept = await context.store.markUnknown(lease.id, lease.fence, { ...unknown, quietMs: quietMs(attempt) });
  return kept ? "given_up" : "gone";
}

function givenUp(why: string): string {
  return `gave_up: ${why}`;
}

/**
 * How long after its lease the entry may still have effects that no intent tells of: none, where all that may have been
 * sent is written down; `null` (nobody can say) where a deduped call may be under way, in this attempt or an earlier one.
 */
function quietMs({ entry, operation, reachedNew, untold }: Attempt): number | null {
  // Earlier attempts stopped at the first step without a record. Other code may have had a call there.
  const knowsEarlier = entry.attempt === 1 || (reachedNew && entry.operationVersion === operation.version);
  return knowsEarlier && untold.size === 0 ? 0 : null;
}

function openIntents(attempt: Attempt): TimedIntent[] {
  return [...attempt.intents.values()].filter(({ intent }) => intent.state === "open");
}

/** How long another attempt would only hear that it is too early. */
function settlesIn({ context }: Attempt, { intent, read }: TimedIntent): number {
  if (intent.form === null) return context.settings.leaseMs;
  if (intent.form !== "settles" || intent.settlesInMs === null) return 0;
  return intent.settlesInMs - (context.settings.clock.monotonicMs() - read.receivedAtMs);
}

/** The kind of an error; its message is the application's, and may hold what must not be stored. So may a name that is none. */
function nameOf(error: unknown): string {
  if (error instanceof StoreFailure) return error.kind;
  if (!(error instanceof Error)) return typeof error;
  const { name } = error as { name: unknown };
  return typeof name === "string" && /^[\w$.]{1,64}$/.test(name) ? name : "Error";
}
