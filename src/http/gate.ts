import { randomUUID } from "node:crypto";
import { requestId, traceParent } from "../core/correlation.ts";
import { OncekeyError } from "../core/errors.ts";
import { identityOf } from "../core/identity.ts";
import { parseKey } from "../core/key.ts";
import type { AnyOutcome, HeaderLine } from "../core/outcome.ts";
import { checkScope } from "../core/scope.ts";
import type { Operation } from "../engine/operation.ts";
import type { OperationRequest } from "../engine/request.ts";
import type { AnyResult } from "../engine/run-result.ts";
import { type BindingOptions, bodyRules } from "./binding.ts";
import { type BodyRules, type ReadBody, readExchangeBody } from "./body.ts";
import type { HeadChanges } from "./captured.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { forbiddenAnswer } from "./problem.ts";
import type { Profile } from "./profile.ts";
import { profileNamed } from "./profiles/index.ts";
import { readRequest } from "./proof.ts";
import { freshAnswer } from "./replay.ts";
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

interface Bound<Native> {
  readonly operation: Operation;
  readonly options: BindingOptions<Native>;
  readonly profile: Profile;
  readonly rules: BodyRules;
}

/**
 * Binds an operation. Raises `oncekey_profile_unknown`, `oncekey_operation_unknown` for an operation of another instance,
 * and `oncekey_scope_invalid` where no scope function is given.
 */
export function bind<Native>(operation: Operation, options: BindingOptions<Native>): Gate<Native> {
  if (typeof options?.scope !== "function") {
    throw new OncekeyError(
      "oncekey_scope_invalid",
      `The binding of ${operation.name} has no scope function, so keys of all callers would be one. Nothing was bound. Add scope: (request) => ({ tenant, client }), from authentication.`,
    );
  }
  const profile = profileNamed(operation.engine.settings.profile);
  const rules = bodyRules(operation, options);
  operation.engine.bound(operation, { requiresKey: options.requireKey ?? true });
  const bound: Bound<Native> = { operation, options, profile, rules };
  return {
    operation,
    rules,
    answer: (exchange) => answer(bound, exchange),
    capture: (exchange, handler) => capture(bound, exchange, handler),
  };
}

// RFC 9110 §9.2.1: nothing to protect, and caches and browsers repeat them at will.
const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "QUERY"]);

/** A handled request that has an answer, ours or the handler's. */
type Answered = Exclude<Handled, { readonly kind: "pass" }>;

async function answer<Native>(bound: Bound<Native>, exchange: Exchange<Native>): Promise<Answer> {
  const { operation, profile } = bound;
  refuseMisuse(operation, exchange.method);
  const handled = await guarded<Native, Answered>(bound, async () => {
    // Without a key nothing can be repeated; a random one lets the operation run once, with all its recovery.
    const admitted = await admit(bound, exchange, readKey(bound, exchange) ?? randomUUID());
    if (admitted.kind === "answer") return admitted;
    const result = await operation.engine.execute(operation, admitted.request);
    return { kind: "answer", answer: resultAnswer(profile, result) };
  });
  return handled.answer;
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
  const { operation, profile } = bound;
  if (SAFE_METHODS.has(exchange.method)) return { kind: "pass" };
  return guarded<Native, Handled>(bound, async () => {
    const key = readKey(bound, exchange);
    if (key === null) {
      // Leaving the key out is no way past the binding's own check.
      const refusal = await refused(bound, exchange.native);
      return refusal === null ? { kind: "pass" } : { kind: "answer", answer: refusal };
    }
    const admitted = await admit(bound, exchange, key);
    if (admitted.kind === "answer") return admitted;
    let ran = false;
    const running = (signal: AbortSignal) => {
      // Whatever befalls the store meanwhile, one request never runs the handler twice.
      if (ran) return Promise.reject(ranAlready());
      ran = true;
      return handler(signal, admitted.body);
    };
    const result = await operation.engine.execute(operation, { ...admitted.request, handler: running });
    const answered = resultAnswer(profile, result);
    // The handler's own answer goes out only where this very request ran it and its result stands.
    if (ran && isOwn(result)) {
      return { kind: "handler", answer: answered, head: { add: [], remove: profile.replayMarker[0] } };
    }
    return { kind: "answer", answer: answered };
  });
}

function ranAlready(): OncekeyError {
  return new OncekeyError(
    "idempotency_store_unavailable",
    "The store was lost while the request ran, so its outcome could not be recorded. Ask again with the same key; nothing is repeated.",
  );
}

function isOwn(result: AnyResult): boolean {
  return "outcome" in result && result.kind !== "replayed";
}

/** Turns errors that a client may see into answers, and adds what every answer of the binding carries. */
async function guarded<Native, T extends Handled>(
  { operation, profile }: Bound<Native>,
  run: () => Promise<T | Answered>,
): Promise<T | Answered> {
  const { settings } = operation.engine;
  const handled = await run().catch((error: unknown): Answered => {
    const refusal = errorAnswer(profile, error);
    if (refusal === null) throw error;
    return { kind: "answer", answer: refusal };
  });
  if (!settings.publishRetention || handled.kind === "pass") return handled;
  const seconds = Math.floor((operation.definition.retentionMs ?? settings.retentionMs) / 1_000);
  const line: HeaderLine = [profile.retentionHeader, String(seconds)];
  const headed: Answer = { ...handled.answer, headers: [...handled.answer.headers, line] };
  if (handled.kind === "answer") return { kind: "answer", answer: headed };
  return { kind: "handler", answer: headed, head: { ...handled.head, add: [line] } };
}

type Admitted =
  | { readonly kind: "request"; readonly request: OperationRequest; readonly body: ReadBody }
  | { readonly kind: "answer"; readonly answer: Answer };

/** Size and coding, canonical form, scope, authorisation: all that a request must pass before its key is looked up. */
async function admit<Native>(bound: Bound<Native>, exchange: Exchange<Native>, key: string): Promise<Admitted> {
  const { operation, options } = bound;
  const body = await readExchangeBody(exchange, bound.rules);
  const read = readRequest(operation, exchange, body);
  const scope = checkScope(await options.scope(exchange.native));
  const refusal = await refused(bound, exchange.native);
  if (refusal !== null) return { kind: "answer", answer: refusal };
  const { definition, identityName, engine } = operation;
  const request: OperationRequest = {
    identity: identityOf(scope, identityName, key, definition.keySpace),
    ...read,
    context: (await options.context?.(exchange.native)) ?? null,
    correlation: traceParent(exchange.headerLines("traceparent")) ?? requestId(exchange.headerLines("x-request-id")),
    waitMs: Math.min(definition.waitMs ?? engine.settings.waitMs, Math.max(0, exchange.remainingMs?.() ?? Infinity)),
    remainingMs: exchange.remainingMs,
  };
  return { kind: "request", request, body };
}

function readKey<Native>({ options, operation, profile }: Bound<Native>, exchange: Exchange): string | null {
  const lines = exchange.headerLines(profile.keyHeader);
  const parsed = parseKey(lines, { maxLength: operation.engine.settings.maxKeyLength });
  if (parsed.kind === "key") return parsed.key;
  if (parsed.kind === "missing" && options.requireKey === false) return null;
  if (parsed.kind === "missing") {
    throw new OncekeyError(
      "idempotency_key_missing",
      `This request needs the header ${profile.keyHeader}. Nothing was run or stored. Make a new random key, keep it, and send it with every attempt.`,
    );
  }
  throw new OncekeyError(
    "idempotency_key_invalid",
    `The header ${profile.keyHeader} is malformed: ${parsed.why}. Nothing was run or stored. Send one key of printable ASCII.`,
  );
}

async function refused<Native>({ options, profile }: Bound<Native>, native: Native): Promise<Answer | null> {
  const said = await options.authorize?.(native);
  if (said === false) return forbiddenAnswer(profile);
  if (typeof said !== "object" || said === null) return null;
  return freshAnswer(profile, said.kind === "rejection" ? said.response : said);
}
