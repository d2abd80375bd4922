import { canonicalPairs, type Pair, sortPairs } from "./body/form.ts";
import { refuseRequest } from "./body/invalid.ts";
import type { RequestBody } from "./body/read.ts";
import { type FramedPart, frame } from "./framing.ts";
import { canonicalValue } from "./json/canonical.ts";
import type { HeaderLine } from "./outcome.ts";

// The layouts below are frozen with FINGERPRINT_VERSION. Their first part keeps digests of one layout apart from those of
// another, whatever the other parts hold.
const HEADERS_VERSION = 1;

/** A request as `compare: "wire"` sees it. */
export interface WireForm {
  /** Case-sensitive (RFC 9110 §9.1). */
  readonly method: string;
  readonly operation: string;
  /** The path as the client sent it, without the query. */
  readonly path: string;
  /** The pairs of the query, in order; `[]` where there is none. */
  readonly query: readonly Pair[];
  /** Names left out of the comparison: tracking parameters, cache busters. */
  readonly omitQuery?: readonly string[];
  readonly body: RequestBody;
  /** The chosen headers only, such as an API version; never those that change per attempt. */
  readonly headers: readonly HeaderLine[];
}

/**
 * The parts of a `wire` fingerprint. Raises `idempotency_request_invalid` for a malformed path. Requests with equal parts
 * ask for the same thing, however they were spelled.
 */
export function wireParts(form: WireForm): FramedPart[] {
  return [
    "wire",
    form.method,
    form.operation,
    canonicalPath(form.path),
    form.query.length === 0 ? NO_QUERY : canonicalPairs(canonicalQuery(form.query, form.omitQuery)),
    form.body.kind,
    form.body.mediaType,
    form.body.canonical(),
    canonicalHeaders(form.headers),
  ];
}

/** A request by its exact bytes, before anything was decoded or parsed. */
export interface RawForm {
  readonly method: string;
  readonly operation: string;
  /** Path and query as the client sent them. */
  readonly target: string;
  readonly contentType: string | null;
  readonly contentEncoding: string | null;
  /** The headers that {@link wireParts} gets. */
  readonly headers: readonly HeaderLine[];
  /** The body as it came, still in its content coding. */
  readonly bytes: Uint8Array;
}

/**
 * The parts of the exact request's digest: a retry that equals it needs no canonical form and no validation. Holds
 * everything that a fingerprint of any form may depend on, so that equal digests always mean equal fingerprints.
 */
export function wireDigestParts(form: RawForm): FramedPart[] {
  return [
    "bytes",
    form.method,
    form.operation,
    form.target,
    form.contentType,
    form.contentEncoding,
    canonicalHeaders(form.headers),
    form.bytes,
  ];
}

/** A request as `compare: "input"` sees it: free of any transport. */
export interface InputForm {
  readonly operation: string;
  /** The validated input, defaults applied. The operation's version is no part of it: a deploy must not refuse old retries. */
  readonly input: unknown;
  /** The members that validation dropped, or `undefined` where it dropped none: else they could change unseen. */
  readonly dropped?: unknown;
}

/**
 * The parts of an `input` fingerprint. Raises `oncekey_value_unsupported` where the input holds something without a
 * canonical form, such as an instance of a class.
 */
export function inputParts(form: InputForm): FramedPart[] {
  const dropped = form.dropped === undefined ? null : canonicalValue(form.dropped);
  return ["input", form.operation, canonicalValue(withoutEmptyParts(form.input)), dropped];
}

/** A transport without params or query says `{}`, another one says nothing: the same request. */
function withoutEmptyParts(input: unknown): unknown {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return input;
  const isEmpty = (part: unknown) => typeof part === "object" && part !== null && Object.keys(part).length === 0;
  const kept = Object.entries(input).filter(([name, part]) => name === "body" || !isEmpty(part));
  return Object.fromEntries(kept);
}

/** There are two characters at most. */
const TWO_DIGITS = /[0-9a-fA-F]{2}/;
const UNRESERVED = /[0-9A-Za-z\-._~]/;

/**
 * The path's normal form (RFC 3986 §6.2.2): percent-encodings in upper case, those of unreserved characters decoded. What
 * is data stays: `%2F` is not `/`, a trailing slash and letter case count, dot segments are kept as they are (routers
 * disagree about them; two spellings then are two requests, which can only refuse). Raises `idempotency_request_invalid`
 * for a malformed percent-encoding.
 */
export function canonicalPath(path: string): string {
  if (!path.includes("%")) return path;
  return path.replace(/%(.{0,2})/gs, (_, hex: string) => {
    if (!TWO_DIGITS.test(hex)) refuseRequest("The path holds a malformed percent-encoding");
    const char = String.fromCharCode(Number.parseInt(hex, 16));
    return UNRESERVED.test(char) ? char : `%${hex.toUpperCase()}`;
  });
}

/**
 * The pairs of a query as they are compared: sorted stably by name, so that the order of repeated names counts and that
 * of different names does not; `x=`, `x` and no `x` stay three things.
 */
export function canonicalQuery(pairs: readonly Pair[], omit?: readonly string[]): Pair[] {
  return sortPairs(pairs.filter(([name]) => omit?.includes(name) !== true));
}

const NO_QUERY = canonicalPairs([]);
const NO_HEADERS = frame(HEADERS_VERSION, []);

// Names in lower case and sorted; several lines of one name keep their order (RFC 9110 §5.3).
function canonicalHeaders(headers: readonly HeaderLine[]): Uint8Array {
  if (headers.length === 0) return NO_HEADERS;
  const lines = headers.map(([name, value]): Pair => [name.toLowerCase(), value]);
  return frame(HEADERS_VERSION, sortPairs(lines).flat());
}
