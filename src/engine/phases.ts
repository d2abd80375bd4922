import { decodeValue, encodeValue } from "../core/codec.ts";
import { type EntryState, leftInProgress, type StoredEntry } from "../core/entry.ts";
import { OncekeyError } from "../core/errors.ts";
import { derivedUuid } from "../core/intent.ts";
import { isResponse } from "../core/response.ts";
import { type Attempt, beginAttempt, step } from "./attempt.ts";
import { endAttempt } from "./attempt-end.ts";
import { makeCall } from "./call.ts";
import { checkCall } from "./call-check.ts";
import type { Prepare } from "./call-tries.ts";
import { claimAbandoned, claimNew, type Owned } from "./claim.ts";
import { complete } from "./complete.ts";
import { done, draftEntry, type EngineContext, growingPause, maxAttemptsOf, type Turn } from "./context.ts";
import { failedTurn } from "./decided-turn.ts";
import type { CallOptions, PhaseStep, PhasesContext, PhasesDefinition } from "./definition.ts";
import { fetchCall } from "./fetch.ts";
import { LeaseLost } from "./lease.ts";
import type { Operation } from "./operation.ts";
import { originOf } from "./origin.ts";
import { inTransaction } from "./phase-transaction.ts";
import type { OperationRequest } from "./request.ts";
import { stepOf } from "./step.ts";
import { openContext, openInput, openRecord, sealContext, sealInput, sealRecord } from "./stored-values.ts";
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
  const encoded = stores ? encodeValue(input) : null;
  const draft = await draftEntry(context, operation, request, {
    input: encoded === null ? null : sealInput(context, request, encoded),
    context: sealContext(context, request),
  });
  const owned = await claimNew(context, operation, draft, request);
  // First run and resume must see the same input, so the first run takes it through the codec too.
  const seen = encoded === null ? input : decodeValue(encoded);
  if (owned === null) return { kind: "again" };
  return runOwned(context, operation, owned, () => seen).catch((error: unknown) => failedTurn(error, "in_progress"));
}

/** Takes over an entry whose owner left, for a retry, and goes on from its recovery point. */
export async function resumePhases(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
  entry: StoredEntry,
): Promise<Turn> {
  const given = entry.input === null ? await request.input() : undefined;
  const owned = await claimAbandoned(context, operation, entry, request);
  return owned === null ? { kind: "again" } : resumeOwned(context, operation, owned, entry.state, given);
}

/**
 * Goes on with an entry that was just taken over `from` a state, for a retry or the sweeper. `given`: the retry's input, of
 * use only where none is stored.
 */
export async function resumeOwned(
  context: EngineContext,
  operation: Operation,
  owned: Owned,
  from: EntryState,
  given?: unknown,
): Promise<Turn> {
  const { entry } = owned;
  context.observed?.tell({ kind: "resumed", attempt: entry.attempt, from });
  if (from === "in_progress" && entry.attempt > maxAttemptsOf(operation)) return restPoisoned(context, owned);
  // Opened only inside the attempt: an input that this release cannot read must count as one, or it is tried for ever.
  return runOwned(context, operation, owned, () => (entry.input === null ? given : openInput(context, entry)));
}

/**
 * An attempt that ends says so; so many that did not were killed, by the run itself for all we know. It is shown to
 * operators, and goes on only after a pause, or it would keep killing whoever takes it up.
 */
async function restPoisoned({ store }: EngineContext, { entry, lease }: Owned): Promise<Turn> {
  lease.stop();
  const reason = leftInProgress(entry.attempt - 1);
  const sweepInMs = growingPause(entry.attempt);
  const mark = { reason, provisional: null, sweepInMs, quietMs: null };
  if (!(await store.markUnknown(lease.id, lease.fence, mark))) return { kind: "again" };
  return done({ kind: "unknown", state: "needs_recovery", reason, provisional: null, retryAfterMs: sweepInMs });
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

function phasesContext(attempt: Attempt, input: unknown): PhasesContext<unknown, unknown> {
  const { entry, lease } = attempt;
  return {
    input,
    ...originOf(entry),
    context: openContext(attempt.context, entry),
    signal: lease.signal,
    phase: (name, run) => begun(attempt, phase(attempt, name, run)),
    call: (name, options) => begun(attempt, call(attempt, name, options as CallOptions<unknown, unknown>)) as never,
    fetch: (name, url, options) =>
      begun(
        attempt,
        fetchCall(
          (called, given, prepare) => call(attempt, called, given as never, prepare as never),
          name,
          url,
          options,
        ),
      ),
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
  const { lease } = attempt;
  return step(
    attempt,
    "phase",
    name,
    (record) => decodeValue(openRecord(attempt.context, lease.id, record.value)) as T,
    async () => {
      const { position, context, entry } = attempt;
      const startedAtMs = context.settings.clock.monotonicMs();
      const encoded = await inTransaction(attempt, name, async (session) => {
        const given = phaseValue(name, await run(stepOf(attempt.context, session, attempt.entry, name)));
        const value = sealRecord(attempt.context, lease.id, given);
        lease.check();
        const kept = await session.recordPhase(lease.id, lease.fence, { position, kind: "phase", name, value });
        if (!kept) throw new LeaseLost("another attempt took over");
        return given;
      });
      const durationMs = context.settings.clock.monotonicMs() - startedAtMs;
      context.observed?.tell({ kind: "phase_committed", phase: name, attempt: entry.attempt, durationMs });
      return decodeValue(encoded) as T;
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

async function call(
  attempt: Attempt,
  name: string,
  options: CallOptions<unknown, unknown>,
  prepare?: Prepare,
): Promise<unknown> {
  const { lease, context } = attempt;
  checkCall(name, options, attempt.operation);
  return step(
    attempt,
    "call",
    name,
    (record) => decodeValue(openRecord(context, lease.id, record.value)),
    async () => {
      const { position } = attempt;
      const encoded = encodeValue(await makeCall(attempt, name, options, prepare));
      const value = sealRecord(context, lease.id, encoded);
      const kept = await context.store.recordCall(lease.id, lease.fence, { position, kind: "call", name, value });
      if (!kept) throw new LeaseLost("another attempt took over");
      settleIntent(attempt, name);
      return decodeValue(encoded);
    },
  );
}

function settleIntent(attempt: Attempt, name: string): void {
  attempt.untold.delete(name);
  const known = attempt.intents.get(name);
  if (known !== undefined) attempt.intents.set(name, { ...known, intent: { ...known.intent, state: "settled" } });
}
