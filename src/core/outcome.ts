import { OncekeyError } from "./errors.ts";

/** A header field line, name in lower case. Several lines of one name are several pairs. */
export type HeaderLine = readonly [name: string, value: string];

/**
 * Bytes that are too many to hold in memory for each request: kept aside (in a file without a name), read in chunks, any
 * number of times until `release`. Only captured answers, and replays of bodies that lie in a `BodyStore`, are long.
 */
export interface LongBody {
  readonly length: number;
  chunks(): AsyncIterable<Uint8Array>;
  /** Another holder of the same bytes, to be released by itself; `null` where the last one has let go already. */
  share(): LongBody | null;
  /** Lets go of the bytes; what holds them is given back when the last holder has. Calling it again does nothing. */
  release(): Promise<void>;
}

/** The bytes of an outcome, in memory or (long ones) aside. */
export type OutcomeBody = Uint8Array | LongBody;

/**
 * What completion stored: status, headers and bytes, always. A queue binding ignores what it does not need. Where a body
 * may be long, `Body` says so.
 */
export interface Outcome<Body extends OutcomeBody = Uint8Array> {
  readonly status: number;
  readonly headers: readonly HeaderLine[];
  readonly body: Body;
}

/** An outcome whose body may be long. */
export type AnyOutcome = Outcome<OutcomeBody>;

/** Whether the bytes lie in memory. */
export function isInMemory(body: OutcomeBody): body is Uint8Array {
  return body instanceof Uint8Array;
}

/** Lets go of a body that nobody reads any more; one in memory has nothing to let go of. */
export async function letGo(body: OutcomeBody): Promise<void> {
  if (!isInMemory(body)) await body.release();
}

/** All bytes of a body, in memory, which the caller has to have the room for. A long body is not released. */
export async function bytesOf(body: OutcomeBody): Promise<Uint8Array> {
  if (isInMemory(body)) return body;
  const chunks: Uint8Array[] = [];
  for await (const chunk of body.chunks()) chunks.push(chunk);
  return new Uint8Array(Buffer.concat(chunks));
}

/** All bytes of a body, as {@link bytesOf}, for whoever is the last to need it: it is let go of, also where reading fails. */
export async function takeBytes(body: OutcomeBody): Promise<Uint8Array> {
  try {
    return await bytesOf(body);
  } finally {
    await letGo(body);
  }
}

/** Headers that are stored and replayed by default. */
const REPLAYED_HEADERS: readonly string[] = [
  "content-type",
  "content-language",
  "content-disposition",
  "content-location",
  "location",
  "etag",
  "link",
  "last-modified",
  "retry-after",
];

/**
 * Headers that are never stored, whatever the allowlist says: they belong to one connection, one moment or one caller.
 * Replaying them leaks sessions (Set-Cookie), breaks framing (Content-Length with Transfer-Encoding) or CORS.
 */
const NEVER_REPLAYED = new Set([
  "set-cookie",
  "set-cookie2",
  "cookie",
  "authorization",
  "proxy-authorization",
  "www-authenticate",
  "proxy-authenticate",
  "authentication-info",
  "proxy-authentication-info",
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "content-length",
  "content-encoding",
  "date",
  "age",
  "vary",
  "idempotent-replayed",
]);

const isDenied = (name: string): boolean => NEVER_REPLAYED.has(name) || name.startsWith("access-control-");

const DEFAULT_ALLOWLIST: ReadonlySet<string> = new Set(REPLAYED_HEADERS);

/** The allowlist of an operation: the default one and `extra` names. Raises `oncekey_config_invalid` for a denied name. */
export function headerAllowlist(extra: readonly string[] = []): ReadonlySet<string> {
  // Asked for with each completion, and nearly no operation adds to it.
  if (extra.length === 0) return DEFAULT_ALLOWLIST;
  const names = extra.map((name) => name.toLowerCase());
  const denied = names.find(isDenied);
  if (denied !== undefined) {
    throw new OncekeyError(
      "oncekey_config_invalid",
      `Header ${denied} can never be replayed: it belongs to one connection or one caller. Take it out of replayHeaders.`,
    );
  }
  return new Set([...REPLAYED_HEADERS, ...names]);
}

/** The header lines of an answer that may be stored, names in lower case, in the order they were set. */
export function storableHeaders(lines: Iterable<HeaderLine>, allowed: ReadonlySet<string>): HeaderLine[] {
  const kept: HeaderLine[] = [];
  for (const [name, value] of lines) {
    const lower = name.toLowerCase();
    if (allowed.has(lower) && !isDenied(lower)) kept.push([lower, value]);
  }
  return kept;
}

const FIELD_NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/i;
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Whether HTTP can carry the line (RFC 9110 §5.1, §5.5). One that cannot be sent must not be committed either. */
export function isSendable([name, value]: HeaderLine): boolean {
  return FIELD_NAME.test(name) && FIELD_VALUE.test(value);
}
