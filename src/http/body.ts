import { bodyKindOf, parseContentType } from "../core/body/content-type.ts";
import { parsedRequestBody, type RequestBody, readRequestBody } from "../core/body/read.ts";
import { OncekeyError } from "../core/errors.ts";
import { unsafeNumberPath } from "../core/json/canonical.ts";
import { pathOf } from "../core/json/trail.ts";
import { decodeContent } from "./coding.ts";
import type { Exchange } from "./exchange.ts";

/** How a request body may come; a request without a body is always read as none. */
export type BodyForm = "json" | "form" | "multipart" | "raw";

/** How a binding reads bodies. */
export interface BodyRules {
  readonly limitBytes: number;
  readonly accepts: readonly BodyForm[];
  readonly fractions: "exact" | "text";
  /** The handler sees ordinary numbers (`capture`): one that they cannot hold is refused. */
  readonly ordinaryNumbers: boolean;
  /** The route opts out of that refusal, for a parsed body too. */
  readonly allowUnsafeNumbers: boolean;
}

/** A request body, read: what is compared, what is handed on, and (where they are left) the bytes. */
export interface ReadBody {
  readonly form: RequestBody;
  /** As they came, still in their content coding; `null` where an earlier parser consumed them. */
  readonly wire: Uint8Array | null;
  /** Without the content coding; `null` likewise. */
  readonly bytes: Uint8Array | null;
  readonly contentType: string | null;
  /** The coding `wire` is in. */
  readonly contentEncoding: string | null;
}

/**
 * Reads a request's body within its limits and brings it to its canonical form. Raises `idempotency_request_too_large`,
 * `idempotency_request_unsupported`, `idempotency_request_invalid`: all of them before any claim.
 * `others`: where a body may be that this one repeats, byte for byte; it is then given instead.
 */
export async function readExchangeBody(exchange: Exchange, rules: BodyRules, others?: OtherBodies): Promise<ReadBody> {
  const contentType = joined(exchange.headerLines("content-type"));
  const read = await exchange.readBody(rules.limitBytes);
  if (read.kind === "too_large") throw tooLarge(rules.limitBytes);
  if (read.kind === "parsed") return parsedBody(contentType, read.value, rules);
  const contentEncoding = read.decoded === true ? null : joined(exchange.headerLines("content-encoding"));
  const given = { wire: read.bytes, contentType, contentEncoding };
  // Asked only now, and told without a wait in between where there is no coding: duplicates may all come in one instant.
  const earlier = others?.earlier();
  if (earlier !== undefined && repeats(earlier, given)) return earlier;
  const isPlain = read.bytes.length === 0 || (contentEncoding === null && read.bytes.length <= rules.limitBytes);
  const bytes = isPlain ? read.bytes : await decoded(contentEncoding, read.bytes, rules.limitBytes);
  if (bytes.length > 0) checkAccepted(contentType, rules.accepts);
  const form = readRequestBody(contentType, bytes, { fractions: rules.fractions });
  if (rules.ordinaryNumbers && form.kind === "json" && !form.ordinaryNumbers) checkNumbers(form);
  const body: ReadBody = { form, bytes, ...given };
  others?.read(body);
  return body;
}

/** What is known of the bodies of other requests. */
export interface OtherBodies {
  /** One that may be the same. */
  earlier(): ReadBody | undefined;
  /** Told of a body that was none of them. */
  read(body: ReadBody): void;
}

type Given = Pick<ReadBody, "contentType" | "contentEncoding"> & { readonly wire: Uint8Array };

/** All that a body is read by, beside the rules of its binding. */
function repeats(earlier: ReadBody, { wire, contentType, contentEncoding }: Given): boolean {
  const sameHead = earlier.contentType === contentType && earlier.contentEncoding === contentEncoding;
  return sameHead && earlier.wire?.length === wire.length && Buffer.compare(earlier.wire, wire) === 0;
}

// Two lines of these headers are malformed; joined by a comma they are refused as such.
function joined(lines: readonly string[]): string | null {
  return lines.length === 0 ? null : lines.join(", ");
}

async function decoded(coding: string | null, bytes: Uint8Array, limitBytes: number): Promise<Uint8Array> {
  const result = await decodeContent(coding, bytes, limitBytes);
  switch (result.kind) {
    case "bytes":
      return result.bytes;
    case "too_large":
      throw tooLarge(limitBytes);
    case "unsupported":
      throw unsupported("The request's content coding is not supported; gzip, deflate and br are");
    case "malformed":
      throw invalid("The request body does not decode by its content coding");
  }
}

function parsedBody(contentType: string | null, value: unknown, rules: BodyRules): ReadBody {
  const { allowUnsafeNumbers } = rules;
  const nothingLeft = { wire: null, bytes: null, contentType, contentEncoding: null };
  if (value === undefined) return { form: parsedRequestBody(contentType, value), ...nothingLeft };
  checkAccepted(contentType, rules.accepts);
  refuseUncomparable(contentType);
  refuseParsedNumbers(value, allowUnsafeNumbers);
  return { form: parsedRequestBody(contentType, value, { allowUnsafeNumbers }), ...nothingLeft };
}

function refuseParsedNumbers(value: unknown, allowed: boolean): void {
  const path = allowed ? null : unsafeNumberPath(value);
  if (path === null) return;
  throw invalid(
    `The number at ${path} has more digits than the route's body parser keeps. Send it as text (or mount the binding before the parser)`,
  );
}

// The fields that a multipart parser leaves in `body` lack the files, and Express 4 leaves `{}` for a body that nobody
// parsed: two different requests would look equal.
function refuseUncomparable(contentType: string | null): void {
  const kind = bodyKindOf(parseContentType(contentType));
  if (kind === "json" || kind === "form") return;
  throw new OncekeyError(
    "oncekey_body_consumed",
    `Another parser read the request's ${kind} body before Oncekey, so it cannot be compared. Nothing was run or stored. Mount the binding before that parser.`,
  );
}

function checkAccepted(contentType: string | null, accepts: readonly BodyForm[]): void {
  if (accepts.includes(bodyKindOf(parseContentType(contentType)))) return;
  throw unsupported(`The request's media type is not supported here; accepted are: ${accepts.join(", ")}`);
}

function checkNumbers(form: RequestBody): void {
  const path = firstBigInt(form.value());
  if (path === null) return;
  throw invalid(`The number at ${path} has more digits than the handler's numbers keep. Send it as text`);
}

// Depth is bounded by the parser.
function firstBigInt(value: unknown, names: readonly (string | number)[] = []): string | null {
  if (typeof value === "bigint") return pathOf(names);
  if (typeof value !== "object" || value === null) return null;
  for (const [name, member] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    const found = firstBigInt(member, [...names, name]);
    if (found !== null) return found;
  }
  return null;
}

function tooLarge(limitBytes: number): OncekeyError {
  return new OncekeyError(
    "idempotency_request_too_large",
    `The request body is larger than ${limitBytes} bytes. Nothing was run or stored. Send a smaller one; the key may stay.`,
  );
}

function unsupported(what: string): OncekeyError {
  return new OncekeyError(
    "idempotency_request_unsupported",
    `${what}. Nothing was run or stored. Send the request in a supported form; the key may stay.`,
  );
}

function invalid(what: string): OncekeyError {
  return new OncekeyError(
    "idempotency_request_invalid",
    `${what}. Nothing was run or stored. Correct the request; the key may stay.`,
  );
}
