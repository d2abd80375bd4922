import { decodeValue } from "../core/codec.ts";
import type { StoredEntry } from "../core/entry.ts";
import type { Reconciled } from "../core/reconcile.ts";
import { claimAbandoned, type Owned } from "./claim.ts";
import { done, type EngineContext, maxDurationOf, type Turn } from "./context.ts";
import type { CaptureDefinition } from "./definition.ts";
import type { Operation } from "./operation.ts";
import { originOf } from "./origin.ts";
import { completionOf, settleResponse } from "./settled-response.ts";

/** Reasons that an attempt wrote at its own end, so that asking about it is worth while at once. */
const ANSWERED = ["handler_threw", "handler_failed"];

type AnyCapture = CaptureDefinition<Record<never, never>>;

/**
 * Whether a captured run may be asked about now. The fence does not reach a handler's own writes, so "nothing happened"
 * is worth nothing while an old attempt may still be at work: until then its lease, its whole duration and one more lease
 * (the longest pause assumed of a process) must have passed.
 */
export function mayReconcile(context: EngineContext, operation: Operation, entry: StoredEntry): boolean {
  return (operation.definition as AnyCapture).reconcile !== undefined && mayTakeUp(context, operation, entry);
}

/** Whether an operation that runs again after a crash (`afterCrash`) may do so now, by the same rule. */
export function mayRunAgain(context: EngineContext, operation: Operation, entry: StoredEntry): boolean {
  return (operation.definition as AnyCapture).afterCrash === "runAgain" && mayTakeUp(context, operation, entry);
}

function mayTakeUp(context: EngineContext, operation: Operation, entry: StoredEntry): boolean {
  if (operation.runKind !== "capture" || entry.runKind !== "capture" || entry.state !== "needs_recovery") return false;
  // An answer is no proof that its handler has ended (a time-out middleware answers for it): asked at once, but see below.
  return ANSWERED.includes(entry.reason ?? "") || isOver(context, operation, entry);
}

function isOver(context: EngineContext, operation: Operation, entry: StoredEntry): boolean {
  return -entry.clock.claimableInMs >= maxDurationOf(operation) + context.settings.leaseMs;
}

/** Claims an entry that needs recovery, asks, and stores what is now known. The next look at the entry tells. */
export async function reconcile(context: EngineContext, operation: Operation, entry: StoredEntry): Promise<Turn> {
  const owned = await claimAbandoned(context, operation, entry);
  if (owned === null) return { kind: "again" };
  try {
    const found = await ask(context, operation, owned);
    // "Happened" is a fact; "not done" is one only when no old attempt can be at work any more.
    const early = found.kind === "not_done" && !isOver(context, operation, entry);
    return await store(context, operation, owned, early ? { kind: "unknown", why: "not done yet" } : found);
  } finally {
    owned.lease.stop();
  }
}

async function ask(context: EngineContext, operation: Operation, { entry, lease }: Owned): Promise<Reconciled> {
  const { reconcile: askHandler } = operation.definition as Required<AnyCapture>;
  try {
    return await askHandler({
      ...originOf(entry),
      context: entry.context === null ? null : decodeValue(entry.context),
      signal: lease.signal,
    });
  } catch (error) {
    context.settings.onError(error, { operation: operation.name, at: "reconcile" });
    return { kind: "unknown", why: "reconcile threw" };
  }
}

async function store(context: EngineContext, operation: Operation, { lease }: Owned, found: Reconciled): Promise<Turn> {
  lease.check();
  switch (found.kind) {
    case "happened": {
      const { state, outcome } = settleResponse(found.response);
      await context.store.complete(lease.id, lease.fence, completionOf(context, operation, state, outcome));
      return { kind: "again" };
    }
    case "not_done":
      await context.store.release(lease.id, lease.fence, true);
      return { kind: "again" };
    case "unknown": {
      const reason = `reconcile: ${found.why}`;
      await context.store.markUnknown(lease.id, lease.fence, reason, null);
      return done({ kind: "unknown", state: "needs_recovery", reason, provisional: null, retryAfterMs: 5_000 });
    }
  }
}
