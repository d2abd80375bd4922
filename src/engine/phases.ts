import { decodeValue, encodeValue } from "../core/codec.ts";
import type { StoredEntry } from "../core/entry.ts";
import { OncekeyError } from "../core/errors.ts";
import { derivedUuid } from "../core/intent.ts";
import { isResponse } from "../core/response.ts";
import { type Attempt, beginAttempt, Halted, step } from "./attempt.ts";
import { makeCall } from "./call.ts";
import { checkCall } from "./call-check.ts";
import { claimAbandoned, claimNew, type Owned } from "./claim.ts";
import { complete } from "./complete.ts";
import { done, draftEntry, type EngineContext, growingPause, type Turn } from "./context.ts";
import type { CallOptions, PhaseStep, PhasesContext, PhasesDefinition } from "./definition.ts";
import { failureResult } from "./failures.ts";
import { LeaseLost } from "./lease.ts";
import { sendFrom } from "./messages.ts";
import type { Operation } from "./operation.ts";
import { originOf } from "./origin.ts";
import { inTransaction } from "./phase-transaction.ts";
import type { OperationRequest } from "./request.ts";
import { untilAborted } from "./until-aborted.ts";

type AnyDefinition = PhasesDefinition<unknown, Record<never, never>>;

/** Claims a new entry and runs the operation. */
export async function claimPhases(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
): Promise<Turn> {
  const input = await request.input();
  const stores = (operation.definition as AnyDefinition).storeInput !== false;
  const draft = await draftEntry(context, operation, request, {
    input: stores ? encodeValue(input) : null,
    context: request.context == null ? null : encodeValue(request.context),
  });
  const owned = await claimNew(context, operation, draft);
  // First run and resume must see the same input, so the first run takes it through the codec too.
  const seen = draft.input === null ? input : decodeValue(draft.input);
  return owned === null ? { kind: "again" } : runOwned(context, operation, owned, () => seen);
}

/**
 * Takes over an entry whose owner left, and goes on from its recovery point: for a retry, or (without a request) for the
 * sweeper, which needs the stored input.
 */
export async function resumePhases(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest | null,
  entry: StoredEntry,
): Promise<Turn> {
  const given = entry.input === null ? await request?.input() : undefined;
  const owned = await claimAbandoned(context, operation, entry);
  if (owned === null) return { kind: "again" };
  // Decoded only now: an input that this release cannot read must count as an attempt, or it would be tried for ever.
  return runOwned(context, operation, owned, () => (entry.input === null ? given : decodeValue(entry.input)));
}

async function runOwned(
  context: EngineContext,
  operation: Operation,
  owned: Owned,
  input: () => unknown,
): Promise<Turn> {
  const disown = context.sharing.own(owned.entry.id, owned.entry.fingerprint);
  try {
    const attempt = await beginAttempt(context, operation, owned);
    return await runAttempt(attempt, input);
  } finally {
    owned.lease.stop();
    disown();
  }
}

async function runAttempt(attempt: Attempt, input: () => unknown): Promise<Turn> {
  try {
    attempt.lease.check();
    const running = (attempt.operation.definition as AnyDefinition).run(phasesContext(attempt, input()) as never);
    // A run that hangs must not keep its client for ever.
    await untilAborted(running, attempt.lease.signal);
    if (attempt.halted !== null) throw attempt.halted;
    if (attempt.outcome === null) throw completeMissing(attempt);
    return done({ kind: "completed", outcome: attempt.outcome });
  } catch (error) {
    return endAttempt(attempt, attempt.halted ?? error);
  }
}

function completeMissing({ operation }: Attempt): OncekeyError {
  return new OncekeyError(
    "oncekey_complete_missing",
    `${operation.name} ended without op.complete(). What its phases committed is kept, no outcome is stored. Return await op.complete(…) on every path.`,
  );
}

/** Leaves the entry in the state that the attempt's end calls for, and says so. */
async function endAttempt(attempt: Attempt, error: unknown): Promise<Turn> {
  // A call that was left un-awaited must not be sent for an entry that is about to be given back.
  attempt.lease.lose("the attempt is over");
  // Its failure is our doing and must not end the process.
  for (const step of attempt.steps) step.catch(() => {});
  if (error instanceof Halted) return endHalted(attempt, error);
  const result = failureResult(error);
  // The lease is lost or the store is: nothing may be written any more, the lease lapses by itself.
  if (result !== null && result.kind !== "contention") return done(result);
  const { settings } = attempt.context;
  // If even that fails the lease lapses by itself; the caller must see why the operation ended.
  await giveBack(attempt).catch((failure: unknown) =>
    settings.onError(failure, { operation: attempt.operation.name, at: "give back" }),
  );
  if (result !== null) return done(result);
  throw error;
}

async function endHalted(attempt: Attempt, { reason }: Halted): Promise<Turn> {
  const { id, fence } = attempt.lease;
  const { store } = attempt.context;
  if (reason.kind === "failed") {
    if (reason.result.kind === "contention") await giveBack(attempt);
    return done(reason.result);
  }
  const kept =
    reason.kind === "suspend"
      ? await store.suspend(id, fence, reason.waitMs)
      : await store.markUnknown(id, fence, reason.reason, null);
  if (!kept) return done({ kind: "lease_lost", retryAfterMs: 1_000 });
  const retryAfterMs = reason.kind === "suspend" ? reason.waitMs : 5_000;
  const state = reason.kind === "suspend" ? "in_progress" : "needs_recovery";
  return done({ kind: "unknown", state, reason: reason.reason, provisional: null, retryAfterMs });
}

/**
 * Lets the next attempt have the entry. Where something is recorded or may have been sent it stays in progress, claimable
 * at once the first time and after a growing pause later: a retry goes on, and the sweeper does if no client comes back.
 */
function giveBack(attempt: Attempt): Promise<boolean> {
  const { context, entry, lease } = attempt;
  const { store, settings } = context;
  if (hasOpenIntent(attempt)) return store.suspend(lease.id, lease.fence, settings.leaseMs);
  const hasBegun = attempt.sent || attempt.active !== null || attempt.position > 0 || entry.attempt > 1;
  if (!hasBegun) return store.release(lease.id, lease.fence, false);
  return store.suspend(lease.id, lease.fence, entry.attempt === 1 ? 0 : growingPause(entry.attempt - 1));
}

function hasOpenIntent(attempt: Attempt): boolean {
  return [...attempt.intents.values()].some(({ intent }) => intent.state === "open");
}

function phasesContext(attempt: Attempt, input: unknown): PhasesContext<unknown, unknown> {
  const { entry, lease } = attempt;
  return {
    input,
    ...originOf(entry),
    context: entry.context === null ? null : decodeValue(entry.context),
    signal: lease.signal,
    phase: (name, run) => begun(attempt, phase(attempt, name, run)),
    call: (name, options) => begun(attempt, call(attempt, name, options as CallOptions<unknown, unknown>)) as never,
    complete: (run) => begun(attempt, complete(attempt, run)),
    now: () => new Date(entry.createdAt),
    uuid: (name) => derivedUuid(entry.seed, name),
  };
}

/**
 * Remembers a step. Its failure is silenced only at the attempt's end (see `endAttempt`): before that, one that nobody
 * awaited must be heard, or the operation answers as if its phase had been committed.
 */
function begun<T>(attempt: Attempt, step: Promise<T>): Promise<T> {
  attempt.steps.push(step);
  return step;
}

function phase<T>(attempt: Attempt, name: string, run: (step: PhaseStep<unknown>) => Promise<T>): Promise<T> {
  const recorded = (value: Uint8Array) => decodeValue(value) as T;
  return step(
    attempt,
    "phase",
    name,
    (record) => recorded(record.value),
    async () => {
      const { position, lease } = attempt;
      return recorded(
        await inTransaction(attempt, name, async (session) => {
          const value = phaseValue(name, await run({ tx: session.tx, send: sendFrom(session, attempt.entry, name) }));
          lease.check();
          const kept = await session.recordPhase(lease.id, lease.fence, { position, kind: "phase", name, value });
          if (!kept) throw new LeaseLost("another attempt took over");
          return value;
        }),
      );
    },
  );
}

/** A refusal that a phase returned would be recorded as a value, and the operation would go on. */
function phaseValue(name: string, value: unknown): Uint8Array {
  if (isResponse(value)) {
    throw new OncekeyError(
      "oncekey_value_unsupported",
      `Phase ${name} returned a response; only op.complete() answers. Its rows were rolled back. To refuse, return op.complete(async () => reject(…)).`,
    );
  }
  return encodeValue(value);
}

async function call(attempt: Attempt, name: string, options: CallOptions<unknown, unknown>): Promise<unknown> {
  checkCall(name, options);
  return step(
    attempt,
    "call",
    name,
    (record) => decodeValue(record.value),
    async () => {
      const { position, lease, context } = attempt;
      const value = encodeValue(await makeCall(attempt, name, options));
      const kept = await context.store.recordCall(lease.id, lease.fence, { position, kind: "call", name, value });
      if (!kept) throw new LeaseLost("another attempt took over");
      settleIntent(attempt, name);
      return decodeValue(value);
    },
  );
}

function settleIntent(attempt: Attempt, name: string): void {
  const known = attempt.intents.get(name);
  if (known !== undefined) attempt.intents.set(name, { ...known, intent: { ...known.intent, state: "settled" } });
}
