import { pause } from "../core/clock.ts";
import type { Completion } from "../core/completion.ts";
import type { StoredEntry } from "../core/entry.ts";
import { sameDigest } from "../core/fingerprint.ts";
import type { AnyOutcome } from "../core/outcome.ts";
import { type AnswerMeaning, meaningOf, NOT_BEGUN_STATUSES } from "../core/outcome-policy.ts";
import { StoreFailure, type UnknownMark } from "../core/store.ts";
import type { StoredOutcome } from "../core/stored-outcome.ts";
import { claimAbandoned, claimNew, type Owned } from "./claim.ts";
import { done, draftEntry, type EngineContext, jittered, keeping, type Turn } from "./context.ts";
import type { CaptureDefinition } from "./definition.ts";
import { LeaseLost } from "./lease.ts";
import type { Operation } from "./operation.ts";
import { attemptOf, ownedAttempt } from "./owned-attempt.ts";
import { captureMark } from "./reconcile.ts";
import type { CapturedHandler, OperationRequest } from "./request.ts";
import { completionOf, storedForm } from "./settled-response.ts";
import { BodyNotStored } from "./stored-body.ts";
import { storeInRow, withoutContent } from "./stored-outcome.ts";
import { sealContext } from "./stored-values.ts";
import { untilAborted } from "./until-aborted.ts";

const UNKNOWN_RETRY_MS = 5_000;

/** Claims (or takes over a given-back entry) and runs the existing handler. */
export async function claimCapture(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
  released?: StoredEntry,
): Promise<Turn> {
  if (released === undefined) await request.input();
  const stored = { input: null, context: sealContext(context, request) };
  const owned =
    released === undefined
      ? await claimNew(context, operation, await draftEntry(context, operation, request, stored), request)
      : await claimAbandoned(context, operation, released, request);
  if (owned === null) return { kind: "again" };
  if (released !== undefined) {
    context.observed?.tell({ kind: "resumed", attempt: owned.entry.attempt, from: released.state });
  }
  const disown = context.sharing.own(owned.entry.id, owned.entry.fingerprint);
  try {
    return await runCaptured(context, operation, request.handler as CapturedHandler, owned).catch(unrecorded);
  } finally {
    owned.lease.stop();
    disown();
  }
}

/** The owner of a captured run is gone: nobody knows what it did, unless the operation may simply run again. */
export async function unknownAfterCrash(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
  entry: StoredEntry,
): Promise<Turn> {
  if ((operation.definition as CaptureDefinition<Record<never, never>>).afterCrash === "runAgain") {
    return claimCapture(context, operation, request, entry);
  }
  await context.store.markUnknown(entry.id, entry.fence, unknownMark(context, operation, "owner_lost"));
  // Marked by us or finished by a slow owner: the next look tells.
  return { kind: "again" };
}

async function runCaptured(
  context: EngineContext,
  operation: Operation,
  handler: CapturedHandler,
  { entry, lease }: Owned,
): Promise<Turn> {
  await checkNotBegun(context, lease);
  const running = ownedAttempt.run(attemptOf(context, { entry, lease }), async () => handler(lease.signal));
  const first = await firstOf(running, lease.signal);
  if (first.kind === "lost") {
    // The handler may still finish: its outcome counts as long as nobody took the entry over.
    void settleLate(context, operation, lease, running);
    const mark = unknownMark(context, operation, "lease_lost");
    await context.store.markUnknown(lease.id, lease.fence, mark).catch(() => false);
    return done({ kind: "lease_lost", retryAfterMs: UNKNOWN_RETRY_MS });
  }
  if (first.kind === "threw") {
    // If even that fails the lease lapses by itself; the caller must see why the handler ended.
    await context.store
      .markUnknown(lease.id, lease.fence, unknownMark(context, operation, "handler_threw"))
      .catch((failure: unknown) => context.settings.onError(failure, { operation: operation.name, at: "mark" }));
    throw first.error;
  }
  return done(await settle(context, operation, lease, first.outcome));
}

/** The fence does not reach what a handler writes: one whose lease ran out while it was claimed must not begin at all. */
async function checkNotBegun({ store }: EngineContext, lease: Owned["lease"]): Promise<void> {
  try {
    lease.check();
  } catch (lost) {
    await store.release(lease.id, lease.fence, false).catch(() => false);
    throw lost;
  }
}

function unknownMark(context: EngineContext, operation: Operation, reason: string): UnknownMark {
  return { ...captureMark(context, operation, reason), provisional: null };
}

type First =
  | { readonly kind: "answered"; readonly outcome: AnyOutcome }
  | { readonly kind: "threw"; readonly error: unknown }
  | { readonly kind: "lost" };

async function firstOf(running: Promise<AnyOutcome>, signal: AbortSignal): Promise<First> {
  try {
    return { kind: "answered", outcome: await untilAborted(running, signal) };
  } catch (error) {
    return signal.aborted && error === signal.reason ? { kind: "lost" } : { kind: "threw", error };
  }
}

/** Stores what an answer means, then hands it on to be sent: effect done, outcome stored, bytes sent. */
async function settle(context: EngineContext, operation: Operation, lease: Owned["lease"], outcome: AnyOutcome) {
  const { notBegun = NOT_BEGUN_STATUSES } = operation.definition as CaptureDefinition<Record<never, never>>;
  const meaning = meaningOf(outcome, notBegun);
  const kept = await store(context, operation, lease, meaning, outcome);
  if (!kept && !(await finishedBy(context, lease))) throw new LeaseLost("another attempt took over");
  if (meaning === "not_begun") return { kind: "not_begun", outcome } as const;
  return { kind: meaning === "unknown" ? "provisional" : "completed", outcome } as const;
}

/** A 5xx as it may be shown meanwhile; a status that is none (Node sends 700 as well) is not kept, nor a body too long. */
async function provisionalOf(
  context: EngineContext,
  operation: Operation,
  id: Uint8Array,
  outcome: AnyOutcome,
): Promise<StoredOutcome | null> {
  if (outcome.status > 599) return null;
  const kept = await storeInRow(context, operation, id, storedForm(operation, outcome));
  return kept.content === null ? null : kept;
}

async function store(
  context: EngineContext,
  operation: Operation,
  lease: Owned["lease"],
  meaning: AnswerMeaning,
  outcome: AnyOutcome,
): Promise<boolean> {
  const { id, fence } = lease;
  switch (meaning) {
    case "not_begun":
      return stubbornly(context, () => context.store.release(id, fence, false));
    case "unknown": {
      const provisional = await provisionalOf(context, operation, id, outcome);
      const mark = { ...unknownMark(context, operation, "handler_failed"), provisional };
      return stubbornly(context, () => context.store.markUnknown(id, fence, mark));
    }
    default: {
      const completion = await completionAtAnyRate(context, operation, lease, { state: meaning, outcome });
      return stubbornly(context, () => context.store.complete(id, fence, completion));
    }
  }
}

/** An effect that is known must not become unknown because its answer is too long to be kept anywhere. */
async function completionAtAnyRate(
  context: EngineContext,
  operation: Operation,
  { id, signal }: Owned["lease"],
  settled: Parameters<typeof completionOf>[3],
): Promise<Completion> {
  try {
    return await stubbornly(context, () => completionOf(context, operation, id, settled), signal);
  } catch (error) {
    if (!(error instanceof BodyNotStored)) throw error;
    const { state, outcome } = settled;
    return { state, outcome: withoutContent(outcome.status), ...keeping(context, operation, state) };
  }
}

/**
 * The handler has begun: "the store is down" would be half the truth, and would let an operation with `onStoreDown: "run"`
 * run it a second time. Covers every failure from here on, those of the handler's own `assertOwned` as well.
 */
function unrecorded(error: unknown): never {
  if (!(error instanceof StoreFailure)) throw error;
  throw new StoreFailure("commit_unknown", "The handler has run, and its outcome could not be recorded.", {
    cause: error,
  });
}

const STORE_TRIES = 10;

/**
 * The effect is done: one blink of the database must not leave it unrecorded. Every store method here may be sent twice.
 * `signal`: no further try once it has aborted.
 */
async function stubbornly<T>(context: EngineContext, run: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof StoreFailure) || tried >= STORE_TRIES || signal?.aborted === true) throw error;
      await pause(context.settings.clock, jittered(context, 50, tried, 1_000));
    }
  }
}

/** A completion whose answer was lost and that was sent again matches nothing the second time: the row tells. */
async function finishedBy(context: EngineContext, { id, fence }: Owned["lease"]): Promise<boolean> {
  const entry = await context.store.read(id);
  return entry?.completedAt != null && sameDigest(entry.fence, fence);
}

async function settleLate(
  context: EngineContext,
  operation: Operation,
  lease: Owned["lease"],
  running: Promise<AnyOutcome>,
): Promise<void> {
  try {
    const { kind, outcome } = await settle(context, operation, lease, await running);
    if (kind === "completed") context.observed?.tell({ kind: "completed_late", status: outcome.status });
  } catch (error) {
    context.settings.onError(error, { operation: operation.name, at: "late answer of a handler that lost its lease" });
  }
}
