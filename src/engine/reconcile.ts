import type { StoredEntry } from "../core/entry.ts";
import type { Reconciled } from "../core/reconcile.ts";
import type { UnknownMark } from "../core/store.ts";
import { claimAbandoned, type Owned } from "./claim.ts";
import { done, type EngineContext, growingPause, maxDurationOf, type Turn } from "./context.ts";
import type { CaptureDefinition } from "./definition.ts";
import { leaseLength } from "./lease.ts";
import type { Operation } from "./operation.ts";
import { originOf } from "./origin.ts";
import { completionOf, type SettledResponse, settleResponse } from "./settled-response.ts";
import { openProvisional } from "./stored-outcome.ts";
import { openContext } from "./stored-values.ts";
import { untilAborted } from "./until-aborted.ts";

/** Reasons that an attempt wrote at its own end, so that asking about it is worth while at once. */
const ANSWERED = ["handler_threw", "handler_failed"];

type AnyCapture = CaptureDefinition<Record<never, never>>;

/** Whether the operation can find out what a captured run did. */
export function canReconcile({ runKind, definition }: Operation): boolean {
  return runKind === "capture" && (definition as AnyCapture).reconcile !== undefined;
}

/**
 * How a captured run is marked whose end nobody saw (`owner_lost`, `lease_lost`), or at its own end. The fence does not
 * reach a handler's own writes, so "nothing happened" is worth nothing while an old attempt may still be at work: its
 * lease, its whole duration and one more lease (the longest pause assumed of a process) must have passed.
 */
export function captureMark(
  context: EngineContext,
  operation: Operation,
  reason: string,
): Omit<UnknownMark, "provisional"> {
  const quietMs = quietTime(context, operation);
  // That it happened can be found at once, after an answer; that it did not is worth asking only in the end.
  const leaseLeftMs = reason === "owner_lost" ? 0 : leaseOf(context, operation);
  const askInMs = ANSWERED.includes(reason) ? growingPause(1) : leaseLeftMs + quietMs;
  return { reason, sweepInMs: canReconcile(operation) ? askInMs : null, quietMs };
}

function quietTime({ settings }: EngineContext, operation: Operation): number {
  return maxDurationOf(operation) + settings.leaseMs;
}

function leaseOf({ store, settings }: EngineContext, operation: Operation): number {
  return leaseLength(store, settings.leaseMs, maxDurationOf(operation));
}

/** Whether a captured run may be asked about now. */
export function mayReconcile(context: EngineContext, operation: Operation, entry: StoredEntry): boolean {
  return canReconcile(operation) && mayTakeUp(context, operation, entry);
}

/** Whether an operation that runs again after a crash (`afterCrash`) may do so now, by the same rule. */
export function mayRunAgain(context: EngineContext, operation: Operation, entry: StoredEntry): boolean {
  return (operation.definition as AnyCapture).afterCrash === "runAgain" && mayTakeUp(context, operation, entry);
}

function mayTakeUp(context: EngineContext, operation: Operation, entry: StoredEntry): boolean {
  if (operation.runKind !== "capture" || entry.runKind !== "capture" || entry.state !== "needs_recovery") return false;
  // A rollout in progress: the old instance must not judge what newer code left behind.
  if (entry.operationVersion > operation.version) return false;
  // An answer is no proof that its handler has ended (a time-out middleware answers for it): asked at once, but see below.
  return ANSWERED.includes(entry.reason ?? "") || settlesIn(context, operation, entry) <= 0;
}

function settlesIn(context: EngineContext, operation: Operation, { clock }: StoredEntry): number {
  return untilSettled(context, operation, clock.settlesInMs, -clock.claimableInMs);
}

/** Milliseconds until no old attempt can be at work any more; entries of older releases tell only how long they are idle. */
export function untilSettled(
  context: EngineContext,
  operation: Operation,
  settlesInMs: number | null,
  idleMs: number,
): number {
  return settlesInMs ?? quietTime(context, operation) - idleMs;
}

/** Claims an entry that needs recovery, asks, and stores what is now known. The next look at the entry tells. */
export async function reconcile(context: EngineContext, operation: Operation, entry: StoredEntry): Promise<Turn> {
  const owned = await claimAbandoned(context, operation, entry);
  if (owned === null) return { kind: "again" };
  return reconcileOwned(context, operation, owned, settlesIn(context, operation, entry));
}

/** The same for an entry that was just taken over, `unsettledMs` before its old attempts are certainly over. */
export async function reconcileOwned(
  context: EngineContext,
  operation: Operation,
  owned: Owned,
  unsettledMs: number,
): Promise<Turn> {
  const { clock } = context.settings;
  const askedAtMs = clock.monotonicMs();
  try {
    const found = await ask(context, operation, owned);
    context.observed?.tell({ kind: "reconciled", found: found.kind, durationMs: clock.monotonicMs() - askedAtMs });
    owned.lease.check();
    switch (found.kind) {
      case "happened":
        return await settled(context, operation, owned, found.settled);
      case "not_done":
        // "Happened" is a fact; "not done" is one only when no old attempt can be at work any more.
        if (unsettledMs > 0) return await stillUnknown(context, operation, owned, NOT_YET, unsettledMs);
        await context.store.release(owned.lease.id, owned.lease.fence, true);
        return { kind: "again" };
      case "unknown":
        return await stillUnknown(context, operation, owned, found.why, unsettledMs);
    }
  } finally {
    owned.lease.stop();
  }
}

/** What was found, its response checked. */
type Answer =
  | Exclude<Reconciled, { kind: "happened" }>
  | { readonly kind: "happened"; readonly settled: SettledResponse };

/** One that hangs must not hold the sweeper's place, nor a client, for as long as a whole run may take. */
const LONGEST_ASKING_MS = 30_000;

async function ask(context: EngineContext, operation: Operation, { entry, lease }: Owned): Promise<Answer> {
  const { reconcile: askHandler } = operation.definition as Required<AnyCapture>;
  const timeout = new AbortController();
  const late = () => timeout.abort(new Error("reconcile gave no answer in time"));
  const cancel = context.settings.clock.after(Math.min(LONGEST_ASKING_MS, maxDurationOf(operation) / 2), late);
  const signal = AbortSignal.any([lease.signal, timeout.signal]);
  try {
    const origin = originOf(entry);
    const found = await untilAborted(askHandler({ ...origin, context: openContext(context, entry), signal }), signal);
    if (found.kind === "happened") return { kind: "happened", settled: settleResponse(found.response) };
    return found.kind === "not_done" ? found : { kind: "unknown", why: shown(found.why) };
  } catch (error) {
    lease.check();
    context.settings.onError(error, { operation: operation.name, at: "reconcile" });
    return { kind: "unknown", why: timeout.signal.aborted ? "it gave no answer in time" : "it threw" };
  } finally {
    cancel();
  }
}

const LONGEST_WHY = 200;

/** A reason as it can be stored and shown: PostgreSQL's text takes no NUL, and nobody reads a page of it. */
function shown(why: unknown): string {
  if (typeof why !== "string") return "it could not say";
  return why
    .slice(0, LONGEST_WHY)
    .replace(/\p{Cc}/gu, " ")
    .toWellFormed();
}

const NOT_YET = "not done yet";
const UNKNOWN_RETRY_MS = 5_000;

async function settled(
  context: EngineContext,
  operation: Operation,
  { lease }: Owned,
  found: SettledResponse,
): Promise<Turn> {
  await context.store.complete(lease.id, lease.fence, await completionOf(context, operation, lease.id, found));
  return { kind: "again" };
}

async function stillUnknown(
  context: EngineContext,
  operation: Operation,
  { entry, lease }: Owned,
  why: string,
  unsettledMs: number,
): Promise<Turn> {
  const reason = `reconcile: ${why}`;
  const quietMs = Math.max(0, Math.ceil(unsettledMs));
  const restMs = growingPause(entry.attempt);
  // Before that time the same answer would be as worthless again; it counts from the end of this asking's own lease.
  const sweepInMs = why === NOT_YET ? Math.max(restMs, leaseOf(context, operation) + quietMs) : restMs;
  await context.store.markUnknown(lease.id, lease.fence, { reason, provisional: null, sweepInMs, quietMs });
  const provisional = await openProvisional(context, entry.id, entry.outcome);
  return done({ kind: "unknown", state: "needs_recovery", reason, provisional, retryAfterMs: UNKNOWN_RETRY_MS });
}
