import { randomUUID } from "node:crypto";
import { requestId, traceParent } from "../core/correlation.ts";
import { type ClientErrorCode, OncekeyError, type RetryAdvice } from "../core/errors.ts";
import { unsafeNumberPath } from "../core/json/canonical.ts";
import type { Scope } from "../core/scope.ts";
import { directRequest } from "../engine/direct-request.ts";
import type { Operation } from "../engine/operation.ts";
import type { CapturedHandler, OperationRequest } from "../engine/request.ts";
import { type AnyResult, inMemory } from "../engine/run-result.ts";
import type { Answer } from "../http/exchange.ts";
import type { ProblemState } from "../http/problem.ts";
import { unasked } from "../http/profile-request.ts";
import { ietf } from "../http/profiles/ietf.ts";
import { forbiddenAnswer } from "../http/refusal.ts";
import { errorAnswer, resultAnswer } from "../http/result.ts";
import { outcomeValue, type ValueTransformer } from "./_call-values.ts";

/**
 * How an operation is bound to calls that are no HTTP requests of their own: several may share one. `Call` is what the
 * framework hands to the code behind it.
 */
export interface CallBindingOptions<Call> {
  /**
   * Whose key it is: tenant and client from *authentication*, never from what the client may choose. A malformed scope
   * raises `oncekey_scope_invalid`.
   */
  scope(call: Call): Scope | Promise<Scope>;
  /** The call's key; `null` and `undefined`: it has none. Default: where the adapter says. */
  key?(call: Call): string | null | undefined | Promise<string | null | undefined>;
  /**
   * Decides every attempt, replays included, before the key is looked up. `false` (or an object, such as a rejection meant
   * for HTTP) answers `idempotency_forbidden`; a throw reaches the client as the framework sends it. Default: allowed.
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: a check that only throws returns nothing.
  authorize?(call: Call): boolean | undefined | void | Promise<boolean | undefined | void>;
  /** Whether a call without a key is refused. `false`: it runs once for itself, without any replay. Default true. */
  readonly requireKey?: boolean;
  /** Stored for resumes without a client: ids, never secrets. Default: nothing. */
  context?(call: Call): unknown;
  /** Called where a result is a replay, to mark it (with a response header, say). Default: nothing. */
  onReplay?(call: Call): void;
  /** What the operation gets as its input's `body`, and what a retry must match. Default: where the adapter says. */
  input?(call: Call): unknown;
  /**
   * Turns what existing code (`capture`) takes and gives into plain data where the codec does not keep it: Map, Set,
   * instances of classes. Default: such values are refused.
   */
  readonly transformer?: ValueTransformer;
  /**
   * Lets integers beyond ±(2^53 − 1) pass, of which the framework's own parser has lost digits: calls that differ only
   * there may then be equal. Default false: refused.
   */
  readonly allowUnsafeNumbers?: boolean;
}

/** What one call brings, in the adapter's reading of it. */
export interface AskedCall {
  /** Every key that was sent, however often; where a call may carry one: `keyPlace`. */
  readonly keyLines: readonly unknown[];
  readonly keyPlace: string;
  readonly body: unknown;
  /** What tells two pieces of existing code behind one `capture` operation apart. */
  readonly target?: string;
  /** The lines of a header of the surrounding request. */
  headerLines(name: string): readonly string[];
  /** The existing code of a `capture` operation. */
  readonly handler?: CapturedHandler;
}

/** A refusal of ours, with the members of a problem body. */
export interface CallProblem {
  readonly code: ClientErrorCode;
  readonly retry: RetryAdvice;
  readonly state: ProblemState;
  readonly status: number;
  readonly title: string;
  /** What happened, what was kept, what to do next. */
  readonly detail: string;
  /** When to come back, in milliseconds; absent: the call need not wait. */
  readonly retryAfterMs?: number;
}

/** What a call comes to. */
export type CallResult =
  /** The operation's (or the existing code's) value; `replayed`: an earlier or concurrent call made it. */
  | { readonly kind: "value"; readonly value: unknown; readonly replayed: boolean }
  /** A refusal by the operation or the existing code, in the form that was recorded. */
  | { readonly kind: "refusal"; readonly status: number; readonly refusal: unknown; readonly replayed: boolean }
  | { readonly kind: "problem"; readonly problem: CallProblem }
  /** No key where none is required: the existing code runs as if it stood alone. */
  | { readonly kind: "pass" };

/** Checks a binding when it is made. Raises `oncekey_scope_invalid` and `oncekey_operation_unknown`. */
export function checkCallBinding<Call>(operation: Operation, options: CallBindingOptions<Call>): void {
  if (typeof options?.scope !== "function") {
    throw new OncekeyError(
      "oncekey_scope_invalid",
      `The binding of ${operation.name} has no scope function, so keys of all callers would be one. Nothing was bound. Add scope, from authentication.`,
    );
  }
  operation.engine.bound(operation, { requiresKey: options.requireKey ?? true });
}

/**
 * Takes one call through key, numbers, scope, authorisation and look-up, and runs the operation where the key is new.
 * Whatever a client may be told is a result. Raises what the operation and the binding's own functions threw; our errors
 * for developers come as the cause of one that shows nothing, because RPC frameworks send messages to clients.
 */
export async function runCall<Call>(
  operation: Operation,
  options: CallBindingOptions<Call>,
  call: Call,
  ask: () => AskedCall | Promise<AskedCall>,
): Promise<CallResult> {
  try {
    const asked = await ask();
    const key = keyOf(operation, options, asked);
    if (key === null && operation.runKind === "capture") {
      return (await isAllowed(options, call)) ? { kind: "pass" } : forbidden();
    }
    const request = await callRequest(operation, options, call, asked, key ?? randomUUID());
    if (request === null) return forbidden();
    const result = await callResult(await operation.engine.execute(operation, request), options.transformer);
    if ("replayed" in result && result.replayed) options.onReplay?.(call);
    return result;
  } catch (error) {
    const answer = errorAnswer(ietf, error, unasked);
    if (answer !== null) return { kind: "problem", problem: problemIn(answer) };
    throw error instanceof OncekeyError ? concealed(error) : error;
  }
}

function keyOf<Call>(
  { name }: Operation,
  { requireKey = true }: CallBindingOptions<Call>,
  { keyLines, keyPlace }: AskedCall,
): string | null {
  const [line, ...others] = keyLines;
  if (others.length > 0) throw keyInvalid("more than one key was sent");
  if (line === undefined && !requireKey) return null;
  if (line === undefined) {
    throw new OncekeyError(
      "idempotency_key_missing",
      `${name} needs ${keyPlace}. Nothing was run or stored. Make a new random key, keep it, and send it with every attempt.`,
    );
  }
  if (typeof line !== "string") throw keyInvalid("it is no text");
  return line;
}

/** The refusal of a key, or of the way it was sent. */
export function keyInvalid(why: string): OncekeyError {
  return new OncekeyError(
    "idempotency_key_invalid",
    `The idempotency key is malformed: ${why}. Nothing was run or stored. Send one key of printable ASCII with every call.`,
  );
}

/** The engine's request, or `null` where the binding forbids the call. */
async function callRequest<Call>(
  operation: Operation,
  options: CallBindingOptions<Call>,
  call: Call,
  asked: AskedCall,
  key: string,
): Promise<OperationRequest | null> {
  refuseUnsafeNumbers(asked.body, options.allowUnsafeNumbers ?? false);
  const scope = await options.scope(call);
  if (!(await isAllowed(options, call))) return null;
  const compared = asked.handler === undefined ? undefined : options.transformer;
  const body = compared === undefined ? asked.body : compared.serialize(asked.body);
  // What is read of the engine's context is the part that an operation carries as well.
  const request = directRequest(operation.engine, operation, {
    scope,
    key,
    input: { body, ...(asked.target !== undefined && { params: { target: asked.target } }) },
    context: (await options.context?.(call)) ?? null,
    correlation: traceParent(asked.headerLines("traceparent")) ?? requestId(asked.headerLines("x-request-id")),
  });
  return asked.handler === undefined ? request : { ...request, handler: asked.handler };
}

/** What HTTP bindings take for an answer refuses here as well: it must not let the caller pass. */
async function isAllowed<Call>(options: CallBindingOptions<Call>, call: Call): Promise<boolean> {
  const said: unknown = await options.authorize?.(call);
  return said !== false && (typeof said !== "object" || said === null);
}

function forbidden(): CallResult {
  return { kind: "problem", problem: problemIn(forbiddenAnswer(ietf, unasked)) };
}

function refuseUnsafeNumbers(body: unknown, allowed: boolean): void {
  const path = allowed ? null : unsafeNumberPath(body);
  if (path === null) return;
  throw new OncekeyError(
    "idempotency_request_invalid",
    `The number at ${path} has more digits than the framework's parser keeps. Nothing was run or stored. Send it as text; the key may stay.`,
  );
}

async function callResult(result: AnyResult, transformer: ValueTransformer | undefined): Promise<CallResult> {
  const settled = await inMemory(result);
  if (!("outcome" in settled))
    return { kind: "problem", problem: problemIn(await resultAnswer(ietf, settled, unasked)) };
  const { outcome } = settled;
  const replayed = settled.kind === "replayed";
  const value = outcomeValue(outcome, transformer);
  if (outcome.status < 400) return { kind: "value", value, replayed };
  return { kind: "refusal", status: outcome.status, refusal: value, replayed };
}

/** The problem that an answer of ours holds: one table says what HTTP clients and callers are told. */
function problemIn({ headers, body }: Answer): CallProblem {
  const { type: _, ...problem } = JSON.parse(new TextDecoder().decode(body as Uint8Array));
  const seconds = headers.find(([name]) => name === "retry-after")?.[1];
  return seconds === undefined ? problem : { ...problem, retryAfterMs: Number(seconds) * 1_000 };
}

function concealed(cause: OncekeyError): Error {
  return new Error("The call failed for a reason that clients are not shown; the server's own log has it.", { cause });
}
