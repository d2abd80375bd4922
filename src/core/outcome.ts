import { OncekeyError } from "./errors.ts";

/** A header field line, name in lower case. Several lines of one name are several pairs. */
export type HeaderLine = readonly [name: string, value: string];

/** What completion stored: status, headers and bytes, always. A queue binding ignores what it does not need. */
export interface Outcome {
  readonly status: number;
  readonly headers: readonly HeaderLine[];
  readonly body: Uint8Array;
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

/** The allowlist of an operation: the default one and `extra` names. Raises `oncekey_config_invalid` for a denied name. */
export function headerAllowlist(extra: readonly string[] = []): ReadonlySet<string> {
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

/** Version of the stored outcome's encoding. Frozen: another layout gets another byte. */
const OUTCOME_VERSION = 1;

/**
 * Headers and body in one value: version byte, length of the header block (32 bits, big endian), header lines as a JSON
 * list of pairs, body bytes as they are. (The status has a column of its own, so that operators can read it.)
 */
export function encodeOutcome(outcome: Outcome): Uint8Array {
  const headers = new TextEncoder().encode(JSON.stringify(outcome.headers));
  const out = new Uint8Array(5 + headers.length + outcome.body.length);
  out[0] = OUTCOME_VERSION;
  new DataView(out.buffer).setUint32(1, headers.length);
  out.set(headers, 5);
  out.set(outcome.body, 5 + headers.length);
  return out;
}

/** The reverse of {@link encodeOutcome}. Raises `idempotency_version_unknown` for an encoding of a newer release. */
export function decodeOutcome(status: number, stored: Uint8Array): Outcome {
  if (stored[0] !== OUTCOME_VERSION) {
    throw new OncekeyError(
      "idempotency_version_unknown",
      `The stored outcome has encoding ${stored[0]}, this version reads ${OUTCOME_VERSION}. Nothing was changed; finish the rollout and retry.`,
    );
  }
  const length = new DataView(stored.buffer, stored.byteOffset, stored.byteLength).getUint32(1);
  const headers = JSON.parse(new TextDecoder().decode(stored.subarray(5, 5 + length))) as HeaderLine[];
  return { status, headers, body: stored.slice(5 + length) };
}
