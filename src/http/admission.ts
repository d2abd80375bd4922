import { randomUUID } from "node:crypto";
import { requestId, traceParent } from "../core/correlation.ts";
import { identityOf } from "../core/identity.ts";
import type { RawInput } from "../core/input.ts";
import { type AnyOutcome, takeBytes } from "../core/outcome.ts";
import { checkScope, type Scope } from "../core/scope.ts";
import type { Operation } from "../engine/operation.ts";
import type { OperationRequest } from "../engine/request.ts";
import type { BindingOptions, RouteForm } from "./binding.ts";
import type { BodiesInUse } from "./bodies-in-use.ts";
import { type BodyRules, type ReadBody, readExchangeBody } from "./body.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { firstSentAtMs } from "./first-sent.ts";
import { lazily } from "./lazily.ts";
import type { KeyRule, Profile } from "./profile.ts";
import { type Asked, type KeyedRequest, type ProfileRequest, profileRequest } from "./profile-request.ts";
import { type ReadRequest, readRequest } from "./proof.ts";
import { forbiddenAnswer } from "./refusal.ts";
import { freshAnswer } from "./replay.ts";
import { headKey, isInHead, memberKey } from "./request-key.ts";

/** An operation with the rules of its binding. */
export interface Bound<Native> {
  readonly operation: Operation;
  readonly options: BindingOptions<Native>;
  readonly profile: Profile;
  /** The dialect's, with what the binding changes of it. */
  readonly keyRule: KeyRule;
  readonly rules: BodyRules;
  readonly bodies: BodiesInUse;
}

/** What is known of a request so far, for whatever answer it gets. */
export interface Asking {
  asked: Asked;
  /** Called when the request is answered. */
  leave(): void;
}

/** What a request is after all that it must pass before its key is looked up. */
export type Admitted =
  | {
      readonly kind: "request";
      readonly request: OperationRequest;
      readonly body: ReadBody;
      /** An outcome in the form of the route; absent where that is the operation's own. */
      readonly shown: ((outcome: AnyOutcome) => Promise<AnyOutcome>) | undefined;
    }
  | { readonly kind: "answer"; readonly answer: Answer }
  /** A captured handler's, without a key where none is needed; its body is unread. */
  | { readonly kind: "pass" };

/** Key, size and coding, canonical form, scope, authorisation. Raises errors that a client may see, and the binding's own. */
export async function admit<Native>(
  bound: Bound<Native>,
  exchange: Exchange<Native>,
  asking: Asking,
): Promise<Admitted> {
  const { operation } = bound;
  const fromHead = isIgnored(bound, exchange) ? null : headKey(demandOf(bound), exchange);
  asking.asked = { ...asking.asked, key: fromHead };
  if (fromHead === null && operation.runKind === "capture" && passesBy(bound, exchange)) {
    firstSentOf(bound, exchange, null);
    // Leaving the key out is no way past the binding's own check.
    const refusal = await refused(bound, exchange.native, asking.asked);
    return refusal === null ? { kind: "pass" } : { kind: "answer", answer: refusal };
  }
  const body = await bodyOf(bound, exchange, asking, fromHead);
  // Few dialects, and only routes with a form of their own, look at it.
  const seen = lazily(() => profileRequest(exchange, body));
  const key = fromHead ?? keyWithin(bound, exchange, seen);
  asking.asked = { ...asking.asked, key };
  const firstSent = firstSentOf(bound, exchange, key);
  const read = readRequest(operation, exchange, body, (raw) => ownInput(bound, raw, exchange.native));
  const scope = checkScope(await bound.options.scope(exchange.native));
  const refusal = await refused(bound, exchange.native, asking.asked);
  if (refusal !== null) return { kind: "answer", answer: refusal };
  const request = await requestOf(bound, exchange, seen, { key, scope, read, firstSentAtMs: firstSent });
  const { form } = bound.options;
  const shown = form === undefined ? undefined : (outcome: AnyOutcome) => inForm(form, outcome, seen());
  return { kind: "request", request, body, shown };
}

/** The request's body, lent to its duplicates meanwhile. */
async function bodyOf<Native>(
  { bodies, rules }: Bound<Native>,
  exchange: Exchange<Native>,
  asking: Asking,
  key: string | null,
): Promise<ReadBody> {
  if (key === null) return readExchangeBody(exchange, rules);
  return readExchangeBody(exchange, rules, {
    earlier: () => bodies.of(key),
    read(body) {
      asking.leave = bodies.lend(key, body);
    },
  });
}

/** The instant that the client says, where late retries are refused. Raises where it is malformed, or has lost its key. */
function firstSentOf<Native>({ operation, profile }: Bound<Native>, exchange: Exchange, key: string | null) {
  const { refuseLateRetries } = operation.engine.settings;
  return refuseLateRetries ? firstSentAtMs(profile, exchange, key !== null) : undefined;
}

function isIgnored<Native>({ keyRule }: Bound<Native>, { method }: Exchange): boolean {
  return keyRule.ignoredOn?.includes(method) ?? false;
}

/** Where a key could still come from the body, the body is read, and what has none runs under a key of its own. */
function passesBy<Native>(bound: Bound<Native>, exchange: Exchange): boolean {
  const { keyRule } = bound;
  return isIgnored(bound, exchange) || (isInHead(keyRule) && keyRule.otherwise === undefined);
}

function demandOf<Native>({ keyRule, operation }: Bound<Native>) {
  return { rule: keyRule, maxLength: operation.engine.settings.maxKeyLength, required: keyRule.required };
}

function keyWithin<Native>(bound: Bound<Native>, exchange: Exchange, seen: () => KeyedRequest): string | null {
  if (isIgnored(bound, exchange)) return null;
  return memberKey(demandOf(bound), seen()) ?? bound.keyRule.otherwise?.(seen()) ?? null;
}

interface Readings {
  readonly key: string | null;
  readonly scope: Scope;
  readonly read: ReadRequest;
  readonly firstSentAtMs: number | undefined;
}

async function requestOf<Native>(
  { operation, options, profile }: Bound<Native>,
  exchange: Exchange<Native>,
  seen: () => ProfileRequest,
  { key, scope, read, firstSentAtMs }: Readings,
): Promise<OperationRequest> {
  const { definition, identityName, rules, engine } = operation;
  const reach = { keySpace: rules.keySpace, partition: profile.partition?.(seen()) ?? null };
  return {
    // Without a key nothing can be repeated; a random one lets the operation run once, with all its recovery.
    identity: identityOf(scope, identityName, key ?? randomUUID(), reach),
    proof: read.proof,
    input: read.input,
    context: (await options.context?.(exchange.native)) ?? null,
    correlation: traceParent(exchange.headerLines("traceparent")) ?? requestId(exchange.headerLines("x-request-id")),
    waitMs: Math.min(definition.waitMs ?? engine.settings.waitMs, Math.max(0, exchange.remainingMs?.() ?? Infinity)),
    remainingMs: exchange.remainingMs,
    firstSentAtMs,
  };
}

async function refused<Native>(
  { options, profile }: Bound<Native>,
  native: Native,
  asked: Asked,
): Promise<Answer | null> {
  const said = await options.authorize?.(native);
  if (said === false) return forbiddenAnswer(profile, asked);
  if (typeof said !== "object" || said === null) return null;
  return freshAnswer(profile, said.kind === "rejection" ? said.response : said, asked);
}

/** What the operation is given: in its own form, and without the key where that travels among its members. */
function ownInput<Native>({ options, keyRule }: Bound<Native>, raw: RawInput, native: Native): RawInput {
  const { form } = options;
  if (form !== undefined) return { ...raw, body: form.input(raw.body, native) };
  if (keyRule.place.in !== "member") return raw;
  const { names } = keyRule.place;
  return { ...raw, body: withoutMembers(raw.body, names), query: withoutMembers(raw.query, names) };
}

function withoutMembers(value: unknown, names: readonly string[]): unknown {
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)));
}

async function inForm<Native>(form: RouteForm<Native>, outcome: AnyOutcome, seen: ProfileRequest): Promise<AnyOutcome> {
  const body = await takeBytes(outcome.body);
  const { status, headers, body: formed } = await form.answer({ ...outcome, body }, seen);
  return { status, headers, body: formed };
}
