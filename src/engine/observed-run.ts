import { traceParent } from "../core/correlation.ts";
import { isClientError, OncekeyError } from "../core/errors.ts";
import type { Store } from "../core/store.ts";
import type { EngineContext } from "./context.ts";
import type { Emit } from "./emitter.ts";
import type { Happening, RunAbout, RunEnd, WorkedBy } from "./event.ts";
import type { Operation } from "./operation.ts";
import type { OperationRequest } from "./request.ts";
import type { AnyResult } from "./run-result.ts";

/** One run as observers are told of it. */
export interface ObservedRun {
  tell(happening: Happening): void;
  /** Adds to the time that it waited for another request. */
  waits(durationMs: number): void;
  /** Its answer is what the request with this correlation ran for. */
  replays(correlation: string | null): void;
  /** It led other requests of this process, which will be given this result. */
  led(result: AnyResult): void;
  /** Its answer is a result that another one led. */
  follows(result: AnyResult): void;
}

/** Observers of several instances may be one: a number must not come twice in a process. */
let lastRunId = 0;

/** Whose run a leader's result tells of, for those that are given it. */
const originOf = new WeakMap<AnyResult, string | null>();

/** Tells of a request from its beginning to its end. Gives and raises what `run` does; without observers it is only that. */
export function observedRequest(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
  run: (context: EngineContext) => Promise<AnyResult>,
): Promise<AnyResult> {
  const { emit } = context;
  if (emit === null) return run(context);
  const { identity, correlation = null } = request;
  const trace = traceOf(correlation);
  const about = aboutOf(operation, { tenant: identity.scope.tenant, id: identity.id, by: "request", trace });
  return told(context, emit, about, run);
}

async function told(
  context: EngineContext,
  emit: Emit,
  about: RunAbout,
  run: (context: EngineContext) => Promise<AnyResult>,
): Promise<AnyResult> {
  const { clock } = context.settings;
  const startedAtMs = clock.monotonicMs();
  const counts: RunCounts = { waitedMs: 0, originTrace: null };
  const observed = observedRun(emit, about, counts);
  const end = (happening: Ending) => {
    if (counts.waitedMs > 0) observed.tell({ kind: "waited", durationMs: counts.waitedMs });
    const times = { durationMs: clock.monotonicMs() - startedAtMs, waitedMs: counts.waitedMs };
    observed.tell({ ...happening, ...times } as RunEnd);
  };
  observed.tell({ kind: "began" });
  try {
    const result = await run(observedContext(context, observed));
    end(endingOf(result, counts.originTrace));
    return result;
  } catch (error) {
    end(failureOf(error));
    throw error;
  }
}

interface RunCounts {
  waitedMs: number;
  originTrace: string | null;
}

/** Distributes over the union: each kind keeps its own members. */
type WithoutTimes<E> = E extends unknown ? Omit<E, "durationMs" | "waitedMs"> : never;
type Ending = WithoutTimes<RunEnd>;

function observedRun(emit: Emit, about: RunAbout, counts: RunCounts): ObservedRun {
  return {
    tell: (happening) => emit({ ...about, ...happening }),
    waits(durationMs) {
      counts.waitedMs += durationMs;
    },
    replays(correlation) {
      counts.originTrace = traceOf(correlation);
    },
    led(result) {
      originOf.set(result, result.kind === "replayed" ? counts.originTrace : about.trace);
    },
    follows(result) {
      counts.originTrace = originOf.get(result) ?? null;
    },
  };
}

/** The context of one run: what its steps do with the store is told as its own. */
function observedContext(context: EngineContext, observed: ObservedRun): EngineContext {
  const { store } = context;
  const claim: Store["claim"] = async (...given) => {
    const entry = await store.claim(...given);
    if (entry !== null) observed.tell({ kind: "claimed", attempt: entry.attempt });
    return entry;
  };
  const markUnknown: Store["markUnknown"] = async (id, fence, mark) => {
    const marked = await store.markUnknown(id, fence, mark);
    if (marked) observed.tell({ kind: "needs_recovery", reason: reasonClass(mark.reason), count: 1 });
    return marked;
  };
  return {
    ...context,
    observed,
    store: Object.create(store, { claim: { value: claim }, markUnknown: { value: markUnknown } }),
  };
}

/** What a sweeper does with one entry, told as a run of its own. `work` says what came of it. */
export async function observedSweep<As extends string>(
  context: EngineContext,
  operation: Operation,
  held: { readonly id: Uint8Array; readonly tenant: string | null; readonly correlation: string | null },
  work: (context: EngineContext) => Promise<As>,
): Promise<As> {
  const { emit } = context;
  if (emit === null) return work(context);
  const { clock } = context.settings;
  const startedAtMs = clock.monotonicMs();
  const about = aboutOf(operation, { ...held, by: "sweeper", trace: traceOf(held.correlation) });
  const observed = observedRun(emit, about, { waitedMs: 0, originTrace: null });
  observed.tell({ kind: "began" });
  const as = await work(observedContext(context, observed));
  const word = as === "gaveUp" ? "gave_up" : (as as "resumed" | "reconciled" | "failed" | "left");
  observed.tell({ kind: "swept", as: word, durationMs: clock.monotonicMs() - startedAtMs });
  return as;
}

/** Tells what the run of a sweeper came to, as a request's end is told. */
export function tellResult({ observed, settings }: EngineContext, result: AnyResult, startedAtMs: number): void {
  const durationMs = settings.clock.monotonicMs() - startedAtMs;
  observed?.tell({ ...endingOf(result, null), durationMs, waitedMs: 0 } as RunEnd);
}

/** Tells of a request that was refused before it had an identity. Other errors are not told: they are no answer of ours. */
export function tellRefused({ emit }: EngineContext, operation: Operation, error: unknown): void {
  if (emit === null || !isClientError(error)) return;
  const about = aboutOf(operation, { tenant: null, id: null, by: "request", trace: null });
  emit({ ...about, kind: "refused", code: error.code, durationMs: 0, waitedMs: 0 });
}

/** Tells of entries that a sweeper marked together. */
export function tellMarked({ emit }: EngineContext, operation: Operation, reason: string, count: number): void {
  if (emit === null || count === 0) return;
  const about = aboutOf(operation, { tenant: null, id: null, by: "sweeper", trace: null });
  emit({ ...about, runId: null, kind: "needs_recovery", reason: reasonClass(reason), count });
}

interface Whose {
  readonly tenant: string | null;
  readonly id: Uint8Array | null;
  readonly by: WorkedBy;
  readonly trace: string | null;
}

function aboutOf({ name, runKind }: Operation, { tenant, id, by, trace }: Whose): RunAbout {
  const entryId = id === null ? null : Buffer.from(id).toString("hex");
  return { tenant, operation: name, runKind, entryId, by, runId: ++lastRunId, trace };
}

/** The `traceparent` that a correlation is; `null` for any other: a request id is the client's text. */
export function traceOf(correlation: string | null | undefined): string | null {
  return correlation == null ? null : traceParent([correlation]);
}

function endingOf(result: AnyResult, originTrace: string | null): Ending {
  switch (result.kind) {
    case "completed": {
      const { status } = result.outcome;
      return { kind: "completed", state: status >= 400 ? "failed" : "succeeded", status };
    }
    case "replayed":
      return { kind: "replayed", status: result.outcome.status, originTrace };
    case "not_begun":
    case "provisional":
    case "unprotected":
      return { kind: result.kind, status: result.outcome.status };
    case "unknown":
      return { kind: "outcome_unknown", state: result.state, reason: reasonClass(result.reason) };
    case "mismatch":
    case "gone":
    case "version_unknown":
      return { kind: result.kind, state: result.state };
    default:
      return { kind: result.kind };
  }
}

function failureOf(error: unknown): Ending {
  const isRefusal = isClientError(error) || (error instanceof OncekeyError && error.code === "oncekey_closed");
  return isRefusal ? { kind: "refused", code: error.code } : { kind: "threw", error: errorName(error) };
}

/** The kind of an error; its message is the application's, and may hold what must not be told. So may a name that is none. */
export function errorName(error: unknown): string {
  if (error instanceof OncekeyError) return error.code;
  if (!(error instanceof Error)) return typeof error;
  try {
    const { name } = error as { name: unknown };
    return typeof name === "string" && /^[\w$.]{1,64}$/.test(name) ? name : "Error";
  } catch {
    return "Error";
  }
}

/** The first word of a reason (`gave_up`, `call_unknown`): what follows it names calls, or is the application's own text. */
function reasonClass(reason: string): string {
  return /^([a-z]+(?:_[a-z]+)*)(?::|$)/.exec(reason)?.[1] ?? "other";
}
