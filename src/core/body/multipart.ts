import { type FramedPart, frame } from "../framing.ts";
import { comparedType, type MediaType, parseContentType } from "./content-type.ts";
import { checkNul, decodeText, refuseCoding, refuseRequest } from "./invalid.ts";
import { nest } from "./nest.ts";
import { parseParameters } from "./parameters.ts";

/** One part of a `multipart/form-data` body (RFC 7578). */
export interface BodyPart {
  readonly name: string;
  /** `null`: an ordinary field. */
  readonly filename: string | null;
  /** The part's own media type as compared (lower case, parameters sorted), or `null`. */
  readonly type: string | null;
  readonly bytes: Uint8Array;
}

/** A file as {@link multipartValue} gives it. */
export interface BodyFile {
  readonly filename: string;
  readonly type: string | null;
  readonly bytes: Uint8Array;
}

/** What a multipart body may hold. */
export interface MultipartLimits {
  /** Most parts. Default 1,000. */
  readonly maxParts: number;
  /** Most bytes of one part's header. Default 8,192. */
  readonly maxPartHeaderBytes: number;
  /** Deepest nesting of names. Default 64. */
  readonly maxDepth: number;
  /** Whether names and text fields may hold U+0000. Default `false`, as in JSON. */
  readonly allowNul: boolean;
}

/** The limits where none are given. */
const MULTIPART_LIMITS: MultipartLimits = {
  maxParts: 1_000,
  maxPartHeaderBytes: 8_192,
  maxDepth: 64,
  allowNul: false,
};

/** Version of a multipart body's canonical form. Frozen with the fingerprint's version. */
const MULTIPART_VERSION = 1;

const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/;

/**
 * The parts of a body, in order; preamble and epilogue are ignored (RFC 2046 §5.1.1). Raises
 * `idempotency_request_invalid` for anything that readers could take apart in two ways: a missing end, a delimiter that
 * goes on, a header or name given twice, a part without a name; `idempotency_request_unsupported` for `filename*` and
 * transfer encodings, which RFC 7578 §4.2 and §4.7 rule out.
 */
export function parseMultipart(media: MediaType, bytes: Uint8Array, limits: Partial<MultipartLimits> = {}): BodyPart[] {
  const boundary = media.parameters.get("boundary");
  if (boundary === undefined || !BOUNDARY.test(boundary))
    return refuseRequest("The multipart boundary is missing or malformed");
  const all = { ...MULTIPART_LIMITS, ...limits };
  return splitParts(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), boundary, all.maxParts).map((part) =>
    readPart(part, all),
  );
}

function splitParts(body: Buffer, boundary: string, maxParts: number): Buffer[] {
  const parts: Buffer[] = [];
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  const opening = delimiter.subarray(2);
  let at = body.subarray(0, opening.length).equals(opening) ? 0 : body.indexOf(delimiter) + 2;
  if (at === 1) refuseRequest("The multipart body has no part");
  for (;;) {
    const after = skipPadding(body, at + opening.length);
    if (after === null) return parts;
    if (parts.length === maxParts) refuseRequest(`The multipart body has more than ${maxParts} parts`);
    const end = body.indexOf(delimiter, after);
    if (end === -1) refuseRequest("The multipart body does not end");
    parts.push(body.subarray(after, end));
    at = end + 2;
  }
}

// Where the part begins after its delimiter; `null` after the last one.
function skipPadding(body: Buffer, at: number): number | null {
  if (body[at] === 0x2d && body[at + 1] === 0x2d) return null;
  let end = at;
  while (body[end] === 0x20 || body[end] === 0x09) end++;
  if (body[end] !== 0x0d || body[end + 1] !== 0x0a) refuseRequest("A multipart delimiter line does not end");
  return end + 2;
}

function readPart(part: Buffer, limits: MultipartLimits): BodyPart {
  const head = part.subarray(0, limits.maxPartHeaderBytes + 4).indexOf("\r\n\r\n");
  if (head === -1) refuseRequest("A multipart part's header is missing, malformed or too long");
  const headers = readHeaders(decodeText(part.subarray(0, head), "A multipart part's header"));
  const encoding = headers.get("content-transfer-encoding")?.toLowerCase() ?? "binary";
  if (!["7bit", "8bit", "binary"].includes(encoding))
    refuseCoding("A multipart part's transfer encoding is not supported");
  const { name, filename } = readDisposition(headers.get("content-disposition"));
  checkNul(name + (filename ?? ""), limits.allowNul, "A multipart part's name");
  // A part's bytes are compared as they are, so all parameters of its type count: "raw".
  const media = parseContentType(headers.get("content-type") ?? null);
  return { name, filename, type: comparedType(media, "raw"), bytes: part.subarray(head + 4) };
}

function refuseHeader(): never {
  return refuseRequest("A multipart part's header is malformed or repeated");
}

function readHeaders(text: string): Map<string, string> {
  const headers = new Map<string, string>();
  for (const line of text.split("\r\n")) {
    // The blanks before the value are not taken by the expression: there it would try each way to share them, in quadratic time.
    const match = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([^\r\n]*)$/.exec(line);
    if (match === null) return refuseHeader();
    const name = (match[1] as string).toLowerCase();
    if (headers.has(name)) return refuseHeader();
    headers.set(name, (match[2] as string).replace(/^[ \t]+/, "").trimEnd());
  }
  return headers;
}

// Browsers escape only the quote, as %22 or \", and leave other backslashes alone (WHATWG HTML §4.10.21.8).
const unescapeQuotes = (quoted: string): string => quoted.replace(/\\"|%22/g, '"');

function readDisposition(value: string | undefined): { name: string; filename: string | null } {
  const parsed = value === undefined ? null : parseParameters(value, unescapeQuotes);
  const name = parsed?.parameters.get("name");
  if (parsed?.value.toLowerCase() !== "form-data" || name === undefined) {
    return refuseRequest("A multipart part has no proper Content-Disposition with a name");
  }
  if (parsed.parameters.has("filename*")) refuseCoding('A multipart part gives "filename*"; send "filename" in UTF-8');
  return { name, filename: parsed.parameters.get("filename") ?? null };
}

/** The canonical form: name, filename, type and bytes of each part, in order; the boundary is only a delimiter. */
export function canonicalMultipart(parts: readonly BodyPart[]): Uint8Array {
  const framed = parts.flatMap((part): FramedPart[] => [part.name, part.filename, part.type, part.bytes]);
  return frame(MULTIPART_VERSION, framed);
}

/**
 * The fields of the parts, by the naming rules of {@link formValue}: files as {@link BodyFile}, text fields (no type, or
 * a text type) as strings, other parts as their bytes. Raises `idempotency_request_invalid` for text that is not UTF-8.
 */
export function multipartValue(parts: readonly BodyPart[], limits: Partial<MultipartLimits> = {}): unknown {
  const { maxDepth, allowNul } = { ...MULTIPART_LIMITS, ...limits };
  return nest(
    parts.map((part) => [part.name, partValue(part, allowNul)] as const),
    maxDepth,
  );
}

function partValue(part: BodyPart, allowNul: boolean): string | Uint8Array | BodyFile {
  const bytes = new Uint8Array(part.bytes);
  if (part.filename !== null) return { filename: part.filename, type: part.type, bytes };
  if (part.type !== null && !part.type.startsWith("text/")) return bytes;
  const text = decodeText(bytes, "A multipart text field");
  checkNul(text, allowNul, "A multipart text field");
  return text;
}
