import { OncekeyError } from "../core/errors.ts";
import { stringifyJson } from "../core/json/stringify.ts";
import type { CallArguments } from "../core/recover.ts";
import type { FetchOptions, FetchRequest, HeaderFields } from "./fetch-options.ts";

const DEFAULT_KEY_HEADER = "Idempotency-Key";

/** Renewed between attempts: a new token must not look like another request. */
const CREDENTIALS = ["authorization", "proxy-authorization", "cookie"];

/** Fetch writes these itself, and refuses them only when it sends. */
const NOT_OURS = ["connection", "content-length", "expect", "keep-alive", "transfer-encoding", "upgrade"];

/**
 * The request of a call, as its digest is compared on a resume. Raises `oncekey_config_invalid` for what could not be
 * sent: out of the call itself it would count as "unknown".
 */
export function fetchRequest(name: string, url: string | URL, options: FetchOptions): FetchRequest {
  checkOptions(name, options);
  const fixed = typeof options.headers === "function" ? null : fieldsOf(name, options.headers);
  const request = {
    method: String(options.method ?? "POST").toUpperCase(),
    url: String(url),
    headers: fixed === null ? null : withContentType(without(fixed, CREDENTIALS), options),
    body: bodyOf(name, options),
  };
  checkSendable(name, request, { ...fixed, [keyHeaderOf(options)]: "key" });
  return request;
}

/** All headers of one sending, the key among them. Raises as {@link fetchRequest}, and what the function of the headers throws. */
export async function sendingHeaders(
  name: string,
  { request, key }: CallArguments<FetchRequest>,
  options: FetchOptions,
): Promise<HeaderFields> {
  const { method, url, body } = request;
  const { headers: given } = options;
  const isFixed = typeof given !== "function";
  const fields = fieldsOf(name, isFixed ? given : await given({ method, url, body, key }));
  const headers = { ...withContentType(fields, options), [keyHeaderOf(options)]: key };
  if (!isFixed) checkSendable(name, request, headers);
  return headers;
}

/** Fields without some names. */
export function without(fields: HeaderFields, names: readonly string[]): HeaderFields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}

/** The bytes as fetch takes them. A view of a larger buffer is no body: copied. */
export function sendable(body: Uint8Array | null): ArrayBuffer | null {
  return body === null ? null : Uint8Array.from(body).buffer;
}

/** The error of a call that cannot be sent; it quotes nothing. */
export function unsendable(name: string, what: string): OncekeyError {
  return new OncekeyError("oncekey_config_invalid", `op.fetch ${name} ${what}. Nothing was sent. Correct the call.`);
}

function checkOptions(name: string, options: FetchOptions): void {
  const { unknownStatuses = [], isUnknown, maxAnswerBytes = 1 } = options;
  const areStatuses = Array.isArray(unknownStatuses) && unknownStatuses.every((status) => Number.isInteger(status));
  if (!areStatuses) throw unsendable(name, "needs unknownStatuses as a list of numbers");
  if (isUnknown !== undefined && typeof isUnknown !== "function")
    throw unsendable(name, "needs isUnknown as a function");
  if (!(maxAnswerBytes >= 0)) throw unsendable(name, "needs maxAnswerBytes from 0");
}

function bodyOf(name: string, { body, json }: FetchOptions): Uint8Array | null {
  if (body !== undefined && json !== undefined) throw unsendable(name, "has both body and json");
  if (json !== undefined) return new TextEncoder().encode(stringifyJson(json));
  if (body === undefined || body === null) return null;
  if (typeof body === "string") return new TextEncoder().encode(body);
  if (body instanceof Uint8Array) return body;
  throw unsendable(name, "has a body that is neither text nor bytes");
}

function keyHeaderOf({ keyHeader = DEFAULT_KEY_HEADER }: FetchOptions): string {
  return String(keyHeader).toLowerCase();
}

function withContentType(fields: HeaderFields, { json }: FetchOptions): HeaderFields {
  return json === undefined ? fields : { "content-type": "application/json", ...fields };
}

/** Names in lower case. A `Headers` object has no members of its own: taken for fields, it would send none of them. */
function fieldsOf(name: string, given: HeaderFields = {}): HeaderFields {
  const isPlain = typeof given === "object" && given !== null && !(Symbol.iterator in given);
  if (!isPlain || !Object.values(given).every((value) => typeof value === "string")) {
    throw unsendable(name, "has headers that are no plain object of text");
  }
  return Object.fromEntries(Object.entries(given).map(([field, value]) => [field.toLowerCase(), value]));
}

function checkSendable(name: string, { method, url, body }: FetchRequest, headers: HeaderFields): void {
  const isHttp = /^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : "");
  if (!isHttp || NOT_OURS.some((field) => Object.hasOwn(headers, field))) throw cannotBeSent(name);
  try {
    new Request(url, { method, headers, body: sendable(body), redirect: "manual" });
  } catch {
    // Not handed on as the cause: its message quotes the URL or the header.
    throw cannotBeSent(name);
  }
}

function cannotBeSent(name: string): OncekeyError {
  return unsendable(name, "has a URL, method, header or body that cannot be sent");
}
