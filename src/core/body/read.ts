import { canonicalValue, unsafeNumberPath } from "../json/canonical.ts";
import { readJson } from "../json/read.ts";
import type { JsonLimits } from "../json/scanner.ts";
import type { JsonValueOptions } from "../json/value.ts";
import {
  type BodyKind,
  bodyKindOf,
  checkCharset,
  comparedType,
  type MediaType,
  parseContentType,
} from "./content-type.ts";
import { canonicalPairs, type FormLimits, formValue, parsePairs, sortPairs } from "./form.ts";
import { decodeText, refuseRequest } from "./invalid.ts";
import { canonicalMultipart, type MultipartLimits, multipartValue, parseMultipart } from "./multipart.ts";

/** A request body, as far as it is compared and handed on. */
export interface RequestBody {
  readonly kind: BodyKind;
  /** The media type as compared, or `null` (no body, or no type given). */
  readonly mediaType: string | null;
  /** Equal for equal bodies of one kind and type, whatever their spelling. Made when it is first asked for: a byte-equal retry is not. */
  canonical(): Uint8Array | string;
  /**
   * The value for schema and handler: JSON without loss, a form's fields, a raw body's bytes, `undefined` for none. May
   * raise `idempotency_request_invalid` (a fraction that a number cannot hold, a form name used in two ways).
   */
  value(): unknown;
  /** JSON that holds no number but those that ordinary numbers hold exactly. `false`: nobody has looked. */
  readonly ordinaryNumbers: boolean;
}

/** How bodies are read: limits of each kind, and what a handler gets. */
export interface ReadBodyOptions extends JsonValueOptions, Partial<JsonLimits & FormLimits & MultipartLimits> {
  /** `"by_name"`: a form's fields may come in any order; those of one name keep theirs. Default `"significant"`. */
  readonly formOrder?: "significant" | "by_name";
}

const NOTHING = new Uint8Array();
const NO_BODY: RequestBody = {
  kind: "none",
  mediaType: null,
  canonical: () => NOTHING,
  value: () => undefined,
  ordinaryNumbers: false,
};

/**
 * Reads a body (already decoded from its content coding) into what is compared and what is handed on. No bytes at all are
 * no body, whatever the type says. Raises `idempotency_request_invalid` for a body that cannot be read in one way only,
 * `idempotency_request_unsupported` for a malformed type or another charset than UTF-8; both before any claim.
 */
export function readRequestBody(
  contentType: string | null,
  bytes: Uint8Array,
  options: ReadBodyOptions = {},
): RequestBody {
  if (bytes.length === 0) return NO_BODY;
  const media = parseContentType(contentType);
  const kind = bodyKindOf(media);
  if (kind !== "raw") checkCharset(media);
  return { kind, mediaType: comparedType(media, kind), ...readAs(kind, media, bytes, options) };
}

type Read = Pick<RequestBody, "canonical" | "value" | "ordinaryNumbers">;

function readAs(
  kind: Exclude<BodyKind, "none">,
  media: MediaType | null,
  bytes: Uint8Array,
  options: ReadBodyOptions,
): Read {
  if (kind === "json") return readJson(bytes, options);
  if (kind === "form") return readForm(bytes, options);
  if (kind === "multipart" && media !== null) return readMultipart(media, bytes, options);
  return { canonical: () => bytes, value: () => bytes, ordinaryNumbers: false };
}

function readForm(bytes: Uint8Array, options: ReadBodyOptions): Read {
  const pairs = parsePairs(decodeText(bytes, "The form body"), options);
  const ordered = options.formOrder === "by_name" ? sortPairs(pairs) : pairs;
  return { canonical: () => canonicalPairs(ordered), value: () => formValue(pairs, options), ordinaryNumbers: false };
}

function readMultipart(media: MediaType, bytes: Uint8Array, options: ReadBodyOptions): Read {
  const parts = parseMultipart(media, bytes, options);
  return {
    canonical: () => canonicalMultipart(parts),
    value: () => multipartValue(parts, options),
    ordinaryNumbers: false,
  };
}

/** What a route allows of a body that the framework's own parser consumed. */
export interface ParsedBodyOptions {
  /** Accept numbers that the parser may have changed: two requests that differ only beyond 2^53 are then equal. */
  readonly allowUnsafeNumbers?: boolean;
}

/**
 * The body of a request whose bytes are gone: only the value that the framework's parser made of them is left. `undefined`
 * is no body. Raises `idempotency_request_invalid` for a number that the parser may have changed, unless allowed, and
 * `oncekey_value_unsupported` for values that cannot be compared.
 */
export function parsedRequestBody(
  contentType: string | null,
  value: unknown,
  options: ParsedBodyOptions = {},
): RequestBody {
  if (value === undefined) return NO_BODY;
  const unsafe = options.allowUnsafeNumbers === true ? null : unsafeNumberPath(value);
  if (unsafe !== null) refuseRequest(`The number at ${unsafe} has more digits than the body's parser keeps`);
  const media = parseContentType(contentType);
  const kind = bodyKindOf(media);
  // At once: what the parser left may not be comparable, and the handler may change it.
  const canonical = canonicalValue(value);
  const mediaType = comparedType(media, kind);
  return { kind, mediaType, canonical: () => canonical, value: () => value, ordinaryNumbers: false };
}
