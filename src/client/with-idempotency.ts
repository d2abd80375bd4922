import { refuse } from "./error.ts";
import { keyFault, newKey } from "./key.ts";

/** How keys are put on requests. */
export interface KeyOptions {
  /** Default `Idempotency-Key`. */
  readonly keyHeader?: string;
  /** Random keys of UUID version 4 (default), or 7, which tells the time of the action. */
  readonly keyVersion?: 4 | 7;
  /** Methods that get a key. Default `POST`, `PUT`, `PATCH` and `DELETE`. */
  readonly methods?: readonly string[];
}

/** Options of `withIdempotency`. */
export interface WithIdempotencyOptions extends KeyOptions {
  /**
   * Refuses a call that brings neither a key nor an action, where each call would be an action of its own. For code whose
   * retry loops write their `init` anew for each attempt. Default `false`.
   */
  readonly requireAction?: boolean;
}

/** Anything that is called as the platform's `fetch` is. */
export type FetchLike = (input: never, init?: never) => Promise<unknown>;

/** A fetch of the same type that puts a key on each call that changes something. */
export type IdempotentFetch<Fetch extends FetchLike> = Fetch & {
  /**
   * A fetch for one action of the user: whatever is sent with it has the same key, so a retry loop around it cannot make a
   * second one. `key`: one of your own, kept by you; it must not be derived from the payload. Default: a new random one.
   * Raises `oncekey_submission_invalid` for a malformed key.
   */
  action(key?: string): Fetch;
};

/** Puts keys where none is; the caller's own is never replaced. Shared by `withIdempotency` and the hooks. */
export interface KeyRule {
  readonly header: string;
  /** Whether a request of this method gets a key. */
  applies(method: string): boolean;
  mint(): string;
  /** Notes a body that can be read once only; raises `oncekey_submission_invalid` where it was sent before (F121). */
  sendOnce(body: unknown): void;
}

interface Input {
  readonly method?: string;
  readonly headers?: Headers;
}

interface Init {
  readonly method?: string;
  readonly headers?: ConstructorParameters<typeof Headers>[0];
  readonly body?: unknown;
}

type Send = (input: Input | string, init?: Init) => Promise<unknown>;

/**
 * Wraps `fetch` so that each call that changes something carries a key. One call is one action; a retry loop keeps its key
 * by sending the same `init` object again, or by sending with `action()`. A loop that writes its `init` anew for each
 * attempt cannot be told from new actions: use `action()` there. One `init` sent to two addresses is refused, because it
 * may be two actions. Nothing is kept beyond the life of the page or process.
 *
 * A `Request` without a key is refused outside `action()`: it can be sent once only, so repetitions of it are copies that
 * nobody can recognise. A stream is sent once; sending it again is refused. Both raise `oncekey_submission_invalid`.
 */
export function withIdempotency<Fetch extends FetchLike>(
  fetch: Fetch,
  options: WithIdempotencyOptions = {},
): IdempotentFetch<Fetch> {
  const rule = keyRule(options);
  const send = fetch as unknown as Send;
  const kept = new WeakMap<object, { readonly key: string; readonly address: string }>();
  const keyOfCall = (input: Input | string, init: Init | undefined) => {
    if (options.requireAction || init === undefined || isRequest(input)) refuse(UNRECOGNISABLE);
    const one = kept.get(init) ?? { key: rule.mint(), address: `${input}` };
    if (one.address !== `${input}`) refuse(SHARED);
    kept.set(init, one);
    return one.key;
  };
  const plain: Send = (input, init) => sendKeyed(rule, send, keyOfCall, input, init);
  const action = (own?: string): Send => {
    const fault = own === undefined ? null : keyFault(own);
    if (fault !== null) refuse(`The key ${fault}`);
    const key = own ?? rule.mint();
    return (input, init) => sendKeyed(rule, send, () => key, input, init);
  };
  return Object.assign(plain, { action }) as unknown as IdempotentFetch<Fetch>;
}

const UNRECOGNISABLE = "A repetition of this could not be recognised: send it with action(), or give it a key";

/** A constant that many calls share: under one key, the second would be given the first one's answer, or be refused. */
const SHARED = "The same init object was sent to another address before: give each action its own, or use action()";

/** The rule that these options describe. */
export function keyRule({
  keyHeader,
  keyVersion = 4,
  methods = ["POST", "PUT", "PATCH", "DELETE"],
}: KeyOptions): KeyRule {
  const keyed = new Set(methods.map((method) => method.toUpperCase()));
  const sent = new WeakSet<object>();
  return {
    header: keyHeader ?? "Idempotency-Key",
    applies: (method) => keyed.has(method.toUpperCase()),
    mint: () => newKey(keyVersion, Date.now()),
    sendOnce(body) {
      if (!readOnce(body)) return;
      if (sent.has(body)) refuse(BODY_SPENT);
      sent.add(body);
    },
  };
}

const BODY_SPENT =
  "The body was read and sent before: give it as text or bytes, or look up what became of that attempt";

async function sendKeyed(
  rule: KeyRule,
  send: Send,
  keyOf: (input: Input | string, init: Init | undefined) => string,
  input: Input | string,
  init?: Init,
): Promise<unknown> {
  const request = isRequest(input) ? input : undefined;
  if (!rule.applies(init?.method ?? request?.method ?? "GET")) return send(input, init);
  // A Request as `init` would lose its members, which are its prototype's, when a header is added.
  if (isRequest(init)) refuse(UNRECOGNISABLE);
  rule.sendOnce(init?.body);
  const headers = new Headers(init?.headers ?? request?.headers);
  if (headers.has(rule.header)) return send(input, init);
  headers.set(rule.header, keyOf(input, init));
  return send(input, { ...init, headers });
}

function isRequest(value: unknown): value is Input {
  return typeof value === "object" && value !== null && "arrayBuffer" in value;
}

/** Streams and generators: of a second reading they give a part or nothing. */
function readOnce(body: unknown): body is object {
  if (typeof body !== "object" || body === null) return false;
  return "getReader" in body || "pipe" in body || "next" in body || Symbol.asyncIterator in body;
}
