import { OncekeyError } from "../core/errors.ts";
import type { AnyOutcome, HeaderLine } from "../core/outcome.ts";
import { retentionOf } from "../engine/context.ts";
import type { Operation } from "../engine/operation.ts";
import type { AnyResult } from "../engine/run-result.ts";
import { type Admitted, type Asking, admit, type Bound } from "./admission.ts";
import { type BindingOptions, bodyRules } from "./binding.ts";
import { bodiesInUse } from "./bodies-in-use.ts";
import type { BodyRules, ReadBody } from "./body.ts";
import type { HeadChanges } from "./captured.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { RETENTION_HEADER } from "./profile.ts";
import { askedBy } from "./profile-request.ts";
import { profileNamed } from "./profiles/index.ts";
import { addedLines } from "./replay.ts";
import { boundKeyRule } from "./request-key.ts";
import { errorAnswer, resultAnswer } from "./result.ts";

/** What an adapter has to do with a request that went through the gate. */
export type Handled =
  /** Send this answer. A captured handler may have run; what it answered is then forgotten. */
  | { readonly kind: "answer"; readonly answer: Answer }
  /** The captured handler of this very request ran and its own answer may go out, with the changes to its head. */
  | { readonly kind: "handler"; readonly answer: Answer; readonly head: HeadChanges }
  /** Nothing of ours applies (a safe method, no key where none is required): call the handler as if it stood alone. */
  | { readonly kind: "pass" };

/** Runs the existing handler of a `capture` binding on the body that was read; resolves with what it answered, unsent. */
export type HttpHandler = (signal: AbortSignal, body: ReadBody) => Promise<AnyOutcome>;

/** An operation bound to a route, free of any framework. */
export interface Gate<Native> {
  readonly operation: Operation;
  readonly rules: BodyRules;
  /**
   * Takes one request of a `transaction` or `phases` operation through key, size and coding, canonical form,
   * authorisation and look-up, and runs the operation where the key is new. Whatever a client may be told comes back as
   * an answer; raises what the operation threw and errors meant for developers, for the framework's own error handling.
   */
  answer(exchange: Exchange<Native>): Promise<Answer>;
  /** The same for a `capture` operation around an existing handler. */
  capture(exchange: Exchange<Native>, handler: HttpHandler): Promise<Handled>;
}

/**
 * Binds an operation. Raises `oncekey_profile_unknown`, `oncekey_operation_unknown` for an operation of another instance,
 * `oncekey_scope_invalid` where no scope function is given, and `oncekey_config_invalid` for a form around a captured handler.
 */
export function bind<Native>(operation: Operation, options: BindingOptions<Native>): Gate<Native> {
  if (typeof options?.scope !== "function") {
    throw new OncekeyError(
      "oncekey_scope_invalid",
      `The binding of ${operation.name} has no scope function, so keys of all callers would be one. Nothing was bound. Add scope: (request) => ({ tenant, client }), from authentication.`,
    );
  }
  if (options.form !== undefined && operation.runKind === "capture") throw formOfCapture(operation);
  const profile = profileNamed(operation.engine.settings.profile);
  const keyRule = boundKeyRule(profile.key, options);
  const rules = bodyRules(operation, options);
  operation.engine.bound(operation, { requiresKey: keyRule.required });
  const bound: Bound<Native> = { operation, options, profile, keyRule, rules, bodies: bodiesInUse() };
  return {
    operation,
    rules,
    answer: (exchange) => answer(bound, exchange),
    capture: (exchange, handler) => capture(bound, exchange, handler),
  };
}

function formOfCapture({ name }: Operation): OncekeyError {
  return new OncekeyError(
    "oncekey_config_invalid",
    `Operation ${name} captures a handler, whose answers already have the form of its route. Nothing was bound. Leave form out.`,
  );
}

// RFC 9110 §9.2.1: nothing to protect, and caches and browsers repeat them at will.
const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "QUERY"]);

const nothingLent = () => {};

/** A handled request that has an answer, ours or the handler's. */
type Answered = Exclude<Handled, { readonly kind: "pass" }>;

async function answer<Native>(bound: Bound<Native>, exchange: Exchange<Native>): Promise<Answer> {
  const { operation, profile } = bound;
  refuseMisuse(operation, exchange.method);
  const asking: Asking = { asked: askedBy(exchange), leave: nothingLent };
  const handled = await guarded<Native, Answered>(bound, asking, async () => {
    const taken = await admitted(bound, exchange, asking);
    if (taken.kind === "pass") throw new Error("Only captured handlers can be passed by.");
    if (taken.kind === "answer") return taken;
    const result = await operation.engine.execute(operation, taken.request);
    return { kind: "answer", answer: await resultAnswer(profile, result, asking.asked, taken.shown) };
  });
  return handled.answer;
}

async function admitted<Native>(bound: Bound<Native>, exchange: Exchange<Native>, asking: Asking): Promise<Admitted> {
  try {
    return await admit(bound, exchange, asking);
  } catch (error) {
    bound.operation.engine.refused(bound.operation, error);
    throw error;
  }
}

function refuseMisuse({ name, runKind }: Operation, method: string): void {
  if (runKind === "capture") {
    throw new OncekeyError(
      "oncekey_config_invalid",
      `Operation ${name} captures an existing handler, and none was given. Nothing was run. Give the handler to the binding.`,
    );
  }
  if (!SAFE_METHODS.has(method)) return;
  throw new OncekeyError(
    "oncekey_config_invalid",
    `Operation ${name} is bound to a safe method (GET, HEAD, …), which may not change anything and is repeated at will. Nothing was run. Bind it to POST, PUT, PATCH or DELETE.`,
  );
}

async function capture<Native>(
  bound: Bound<Native>,
  exchange: Exchange<Native>,
  handler: HttpHandler,
): Promise<Handled> {
  if (SAFE_METHODS.has(exchange.method)) return { kind: "pass" };
  const asking: Asking = { asked: askedBy(exchange), leave: nothingLent };
  return guarded<Native, Handled>(bound, asking, async () => {
    const taken = await admitted(bound, exchange, asking);
    return taken.kind === "request" ? runCaptured(bound, asking, taken, handler) : taken;
  });
}

async function runCaptured<Native>(
  { operation, profile }: Bound<Native>,
  { asked }: Asking,
  admitted: Extract<Admitted, { readonly kind: "request" }>,
  handler: HttpHandler,
): Promise<Answered> {
  let ran = false;
  const running = (signal: AbortSignal) => {
    // Whatever befalls the store meanwhile, one request never runs the handler twice.
    if (ran) return Promise.reject(ranAlready());
    ran = true;
    return handler(signal, admitted.body);
  };
  const result = await operation.engine.execute(operation, { ...admitted.request, handler: running });
  const answered = await resultAnswer(profile, result, asked);
  // The handler's own answer goes out only where this very request ran it and its result stands.
  if (!ran || !isOwn(result)) return { kind: "answer", answer: answered };
  const add = addedLines(profile, result.kind === "not_begun" ? "not_begun" : "own", result.outcome, asked);
  return { kind: "handler", answer: answered, head: { add, remove: profile.replayMarker?.[0] ?? null } };
}

function ranAlready(): OncekeyError {
  return new OncekeyError(
    "idempotency_store_unavailable",
    "The store was lost while the request ran, so its outcome could not be recorded. Ask again with the same key; nothing is repeated.",
  );
}

function isOwn(result: AnyResult): result is Extract<AnyResult, { readonly outcome: AnyOutcome }> {
  return "outcome" in result && result.kind !== "replayed";
}

/** Turns errors that a client may see into answers, and adds what every answer of the binding carries. */
async function guarded<Native, T extends Handled>(
  { operation, profile }: Bound<Native>,
  asking: Asking,
  run: () => Promise<T | Answered>,
): Promise<T | Answered> {
  let handled: T | Answered;
  try {
    handled = await run();
  } catch (error) {
    const refusal = errorAnswer(profile, error, asking.asked);
    if (refusal === null) throw error;
    handled = { kind: "answer", answer: refusal };
  } finally {
    asking.leave();
  }
  const lines = retentionLines(operation);
  if (lines.length === 0 || handled.kind === "pass") return handled;
  const headed: Answer = { ...handled.answer, headers: [...handled.answer.headers, ...lines] };
  if (handled.kind === "answer") return { kind: "answer", answer: headed };
  return { kind: "handler", answer: headed, head: { ...handled.head, add: [...handled.head.add, ...lines] } };
}

function retentionLines(operation: Operation): readonly HeaderLine[] {
  if (!operation.engine.settings.publishRetention) return [];
  return [[RETENTION_HEADER, String(Math.floor(retentionOf(operation) / 1_000))]];
}
