import type { OutgoingHttpHeader, ServerResponse } from "node:http";
import type { HeaderLine } from "../core/outcome.ts";
import type { Answer } from "./exchange.ts";
import { sendBody } from "./send-body.ts";

/** Status and headers of a response before a handler touched them. */
export interface Head {
  readonly statusCode: number;
  readonly statusMessage: string;
  readonly headers: readonly (readonly [name: string, value: OutgoingHttpHeader])[];
}

/** Keeps status and headers for {@link restoreHead}. */
export function rememberHead(res: ServerResponse): Head {
  const { statusCode, statusMessage } = res;
  const headers = res.getHeaderNames().map((name) => {
    const value = res.getHeader(name) ?? "";
    return [name, Array.isArray(value) ? [...value] : value] as const;
  });
  return { statusCode, statusMessage, headers };
}

/** Puts status and headers back. The head must not have been sent. */
export function restoreHead(res: ServerResponse, head: Head): void {
  for (const name of res.getHeaderNames()) res.removeHeader(name);
  for (const [name, value] of head.headers) res.setHeader(name, value);
  res.statusCode = head.statusCode;
  res.statusMessage = head.statusMessage;
}

/** The header lines set on a response, names in lower case, each of several values a line of its own. */
export function headerLinesOf(res: ServerResponse): HeaderLine[] {
  return Object.entries(res.getHeaders()).flatMap(([name, value]) => {
    const values = Array.isArray(value) ? value : [value];
    return values.filter((single) => single !== undefined).map((single): HeaderLine => [name, String(single)]);
  });
}

/**
 * Sets header fields in any form that Node's `writeHead` takes: an object, a flat list of names and values, a list of
 * pairs. A list may name a header several times; it then replaces what was set before, as Node does.
 */
export function applyFields(res: ServerResponse, fields: unknown): void {
  if (fields === undefined || fields === null) return;
  if (!Array.isArray(fields)) {
    // A value that is undefined throws, as it does in Node.
    for (const [name, value] of Object.entries(fields)) if (name !== "") res.setHeader(name, value);
    return;
  }
  const pairs = Array.isArray(fields[0]) ? (fields as [string, OutgoingHttpHeader][]) : pairsOf(fields);
  for (const [name] of pairs) res.removeHeader(name);
  for (const [name, value] of pairs) res.appendHeader(name, typeof value === "number" ? String(value) : value);
}

function pairsOf(flat: readonly unknown[]): [string, OutgoingHttpHeader][] {
  if (flat.length % 2 !== 0) throw nodeError("ERR_INVALID_ARG_VALUE", "The header list has an odd number of members");
  return flat.flatMap((name, at) =>
    at % 2 === 0 ? [[name as string, flat[at + 1] as OutgoingHttpHeader] as [string, OutgoingHttpHeader]] : [],
  );
}

/** The bytes of a chunk. Throws what Node throws for other types. */
export function toBytes(chunk: unknown, encoding: unknown): Uint8Array {
  if (chunk === null) throw nodeError("ERR_STREAM_NULL_VALUES", "May not write null values to stream");
  if (chunk instanceof Uint8Array) return chunk;
  if (typeof chunk === "string") {
    return Buffer.from(chunk, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8");
  }
  throw nodeError("ERR_INVALID_ARG_TYPE", "A chunk must be a string, a Buffer or a Uint8Array");
}

/** An error as Node raises it, for code that looks at `code`. */
export function nodeError(code: string, message: string): Error {
  return Object.assign(code === "ERR_HTTP_INVALID_STATUS_CODE" ? new RangeError(message) : new TypeError(message), {
    code,
  });
}

/** Headers that earlier middleware may have set for this caller, and that an answer of ours adds to. */
const ADDED = new Set(["set-cookie", "vary"]);

/**
 * What describes a representation. Where it was set before us (by a decorator of the handler's, a filter) it meant the
 * handler's own answer: a replay under another one's coding could not be read.
 */
export const OF_A_REPRESENTATION: readonly string[] = [
  "content-type",
  "content-length",
  "content-encoding",
  "content-range",
  "content-disposition",
  "content-language",
  "content-location",
  "transfer-encoding",
  "etag",
  "last-modified",
  "location",
];

/** Writes a whole answer to a response whose head was not sent; headers of earlier middleware (CORS, request ids) stay. */
export function writeNodeAnswer(res: ServerResponse, { status, headers, body }: Answer): void {
  res.statusCode = status;
  for (const name of OF_A_REPRESENTATION) res.removeHeader(name);
  for (const name of new Set(headers.map(([name]) => name))) {
    const values = headers.filter(([other]) => other === name).map(([, value]) => value);
    if (ADDED.has(name)) for (const value of values) res.appendHeader(name, value);
    else res.setHeader(name, values.length === 1 ? String(values[0]) : values);
  }
  sendBody(res, body);
}
