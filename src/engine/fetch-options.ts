import type { KeyForm } from "../core/intent.ts";
import type { Recover } from "../core/recover.ts";

/** Header names (any case) and values. */
export type HeaderFields = Readonly<Record<string, string>>;

/** What `op.fetch` sends, as it is given to `recover`'s functions. Its digest is compared on resume. */
export interface FetchRequest {
  readonly method: string;
  readonly url: string;
  /** Names in lower case, without the key and without credentials. `null`: a function gives them at each sending. */
  readonly headers: HeaderFields | null;
  readonly body: Uint8Array | null;
}

/** What is recorded of an answer, and what `find` gives. */
export interface FetchRecord {
  readonly status: number;
  /** Names in lower case, several lines joined with ", "; without `set-cookie` and what only describes the transfer. */
  readonly headers: HeaderFields;
  /** Decoded from its content coding. */
  readonly body: Uint8Array;
}

/** The answer of `op.fetch`; the same on the first run and on every resume. */
export interface FetchAnswer extends FetchRecord {
  /** The body as UTF-8. */
  text(): string;
  /**
   * The body as JSON. Integers beyond ±(2^53 − 1) arrive as `bigint`, fractions as the nearest number. Raises
   * `idempotency_request_invalid` for what is no JSON, or ambiguous JSON (a member given twice).
   */
  json(): unknown;
}

/** An HTTP call to the other side, sent with its idempotency key. */
export interface FetchOptions {
  /** Default `POST`. */
  readonly method?: string;
  /**
   * Plain fields belong to the request that a resume must repeat, except `authorization`, `proxy-authorization` and
   * `cookie`, which may be renewed. A function is called at every sending, and nothing of what it gives is compared,
   * digested or stored: for secrets of another name and for signatures, which take the final request. What it throws
   * before anything was sent is the operation's own error; after a sending that may have arrived the call stays unknown.
   */
  readonly headers?: HeaderFields | ((sending: FetchSending) => HeaderFields | Promise<HeaderFields>);
  /** The bytes or text to send. */
  readonly body?: string | Uint8Array;
  /** A value to send as JSON, with exact digits of a `bigint`, and `content-type: application/json`. Excludes `body`. */
  readonly json?: unknown;
  /** Where the key goes. Default `Idempotency-Key`. */
  readonly keyHeader?: string;
  /** How the key is spelled. Default `base64url`; `providerKeyLimits` says which form a provider takes. */
  readonly keyForm?: KeyForm;
  /**
   * Statuses, beside all of 500 and above, after which nobody knows what was done. Default 408, 409, 425, 429: to a request
   * with a key, 409 says that an earlier one with it is still running. Every other status is an answer and is recorded, also
   * a 401: add it here where credentials may be wrong for a while.
   */
  readonly unknownStatuses?: readonly number[];
  /**
   * Tells of an answer with another status that it does not say what was done either, by its body: Adyen's 422 with
   * errorCode 704 is "already processed or in progress". Default: none.
   */
  readonly isUnknown?: (answer: FetchAnswer) => boolean | Promise<boolean>;
  /** Longest time one attempt may take, its body included, in milliseconds. */
  readonly timeoutMs: number;
  /** Largest answer in bytes; a larger one counts as no answer. Default 1,048,576. */
  readonly maxAnswerBytes?: number;
  /** How the call is settled when its answer is missing. */
  readonly recover: Recover<FetchRequest, FetchRecord>;
}

/** What is about to be sent. */
export interface FetchSending {
  readonly method: string;
  readonly url: string;
  readonly body: Uint8Array | null;
  /** The derived key of this call and generation. */
  readonly key: string;
}
