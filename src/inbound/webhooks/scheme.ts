import { createHmac, timingSafeEqual } from "node:crypto";
import { OncekeyError } from "../../core/errors.ts";
import { parseJson } from "../../core/json/parse.ts";
import { jsonValue } from "../../core/json/value.ts";
import { headerReader, type ReadHeader, type WebhookHeaders } from "./headers.ts";

/** A signing secret as the provider shows it, or its bytes. */
export type WebhookSecret = string | Uint8Array;

/** A webhook as it arrived. */
export interface SignedRequest {
  readonly headers: WebhookHeaders;
  /** The bytes of the body as they came: a body that was parsed and written again has another signature. */
  readonly body: Uint8Array;
  /** All that are valid now: during a rotation the old and the new one. */
  readonly secrets: readonly WebhookSecret[];
  /** How far the timestamp may lie from now, in either direction, in milliseconds. Default 300,000. */
  readonly toleranceMs?: number;
  /**
   * Now, in milliseconds since the epoch. Default: this machine's wall clock. The timestamp is what the sender's wall clock
   * said, and nothing may touch the database for a request that nobody has signed; so clocks must be synchronised (NTP).
   */
  readonly nowMs?: number;
}

/** Why a webhook was refused; for logs and counters, never for the sender. */
export type RefusalReason =
  | "header_missing"
  | "header_malformed"
  | "signature_wrong"
  | "timestamp_outside"
  | "body_not_json"
  | "id_missing";

/** What verifying gave. Only a verified webhook may be believed in any part. */
export type Verification =
  | {
      readonly kind: "verified";
      /** The same on every redelivery of the event. */
      readonly eventId: string;
      readonly type: string | null;
      /** When the event happened, by the sender. */
      readonly occurredAt: Date | null;
      /** The body's JSON: integers beyond ±(2^53 − 1) as `bigint`, fractions as the nearest number. */
      readonly payload: unknown;
    }
  | { readonly kind: "refused"; readonly why: RefusalReason };

/** How a provider signs its webhooks. */
export interface WebhookScheme {
  readonly name: string;
  /** How long the provider goes on redelivering an event, in milliseconds; ids must be remembered for longer. */
  readonly redeliversForMs: number;
  /**
   * Checks signature, then timestamp, then body, and reads the event's id. Raises `oncekey_webhook_invalid` where there is
   * no usable secret.
   */
  verify(request: SignedRequest): Verification;
}

/** Default of {@link SignedRequest.toleranceMs}: what Stripe and Standard Webhooks use. */
export const DEFAULT_TOLERANCE_MS = 300_000;

/** What a scheme reads out of the headers. */
export interface SignedClaim {
  readonly kind: "claim";
  /** Signatures as text, in the encoding of the scheme; one that fits is enough. */
  readonly signatures: readonly string[];
  /** What was signed, in order. */
  readonly signed: readonly (string | Uint8Array)[];
  /** Milliseconds since the epoch; `null`: the scheme has no timestamp. */
  readonly timestampMs: number | null;
}

/** Where the event's id, type and time stand. */
export interface EventFacts {
  readonly id: unknown;
  readonly type: unknown;
  readonly occurredAt: Date | null;
}

/** What tells one scheme from another. */
export interface SchemeParts {
  readonly name: string;
  readonly redeliversForMs: number;
  readonly algorithm: "sha1" | "sha256" | "sha512";
  readonly encoding: "hex" | "base64" | "base64url";
  /** The HMAC key of a secret. */
  key(secret: WebhookSecret): Uint8Array;
  claim(header: ReadHeader, body: Uint8Array): SignedClaim | RefusalReason;
  facts(payload: unknown, header: ReadHeader, body: Uint8Array): EventFacts;
}

/** A scheme of HMAC signatures. */
export function hmacScheme(parts: SchemeParts): WebhookScheme {
  const { name, redeliversForMs } = parts;
  return { name, redeliversForMs, verify: (request) => verify(parts, request) };
}

function verify(parts: SchemeParts, request: SignedRequest): Verification {
  const { body, toleranceMs = DEFAULT_TOLERANCE_MS, nowMs = Date.now() } = request;
  const keys = keysOf(parts, request.secrets);
  const header = headerReader(request.headers);
  const claim = parts.claim(header, body);
  if (typeof claim === "string") return refused(claim);
  if (!isSigned(parts, claim, keys)) return refused("signature_wrong");
  // After the signature: only the sender may learn how far its clock is off.
  if (claim.timestampMs !== null && !(Math.abs(nowMs - claim.timestampMs) <= toleranceMs)) {
    return refused("timestamp_outside");
  }
  const parsed = payloadOf(body);
  if (parsed === null) return refused("body_not_json");
  const { id, type, occurredAt } = parts.facts(parsed.payload, header, body);
  if (!isEventId(id)) return refused("id_missing");
  return {
    kind: "verified",
    eventId: id,
    type: typeof type === "string" ? type : null,
    occurredAt: occurredAt !== null && Number.isNaN(occurredAt.getTime()) ? null : occurredAt,
    payload: parsed.payload,
  };
}

/** The longest id that the inbox keeps. */
const MAX_ID_LENGTH = 512;

/** As the inbox demands it: delivered again it would be no better. */
function isEventId(id: unknown): id is string {
  const isKept = typeof id === "string" && id !== "" && id.length <= MAX_ID_LENGTH;
  return isKept && id.isWellFormed() && !id.includes("\0");
}

function refused(why: RefusalReason): Verification {
  return { kind: "refused", why };
}

/** Whether one of the signatures fits one of the keys. All are looked at, so that time tells nothing about which. */
function isSigned(parts: SchemeParts, { signatures, signed }: SignedClaim, keys: readonly Uint8Array[]): boolean {
  let fits = false;
  for (const key of keys) {
    const hmac = createHmac(parts.algorithm, key);
    for (const part of signed) hmac.update(part);
    const expected = Buffer.from(hmac.digest(parts.encoding));
    for (const signature of signatures) {
      const given = Buffer.from(parts.encoding === "hex" ? signature.toLowerCase() : signature);
      if (given.length === expected.length && timingSafeEqual(given, expected)) fits = true;
    }
  }
  return fits;
}

function keysOf({ name, key }: SchemeParts, secrets: readonly WebhookSecret[]): Uint8Array[] {
  if (!Array.isArray(secrets) || secrets.length === 0) {
    throw webhookInvalid(`The ${name} webhook has no secret, so nothing can be verified`);
  }
  return (secrets as readonly WebhookSecret[]).map((secret) => {
    const bytes = key(secret);
    if (bytes.length === 0)
      throw webhookInvalid(`A secret of the ${name} webhook is empty: anybody could sign with it`);
    return bytes;
  });
}

/** A secret whose characters are the key. A space at its ends is a copying mistake, and would fit no signature ever. */
export function textKey(secret: WebhookSecret): Uint8Array {
  if (typeof secret !== "string") return bytesKey(secret);
  if (secret !== secret.trim()) throw webhookInvalid("A webhook secret begins or ends with white space");
  return new TextEncoder().encode(secret);
}

/** A secret given as bytes. */
export function bytesKey(secret: unknown): Uint8Array {
  if (secret instanceof Uint8Array) return secret;
  throw webhookInvalid("A webhook secret is neither text nor bytes");
}

/** The error of a webhook endpoint that is not configured soundly. */
export function webhookInvalid(what: string): OncekeyError {
  return new OncekeyError(
    "oncekey_webhook_invalid",
    `${what}. Nothing was accepted or stored. Correct the configuration.`,
  );
}

/** Strict and lossless; `null` for what is no JSON, or JSON that two parsers may read differently (a member given twice). */
function payloadOf(body: Uint8Array): { readonly payload: unknown } | null {
  try {
    return { payload: jsonValue(parseJson(body, { allowNul: true }), { fractions: "nearest" }) };
  } catch (error) {
    if (error instanceof OncekeyError) return null;
    throw error;
  }
}

/** A member of a payload, or `undefined`. */
export function memberOf(payload: unknown, name: string): unknown {
  const isObject = typeof payload === "object" && payload !== null && Object.hasOwn(payload, name);
  return isObject ? (payload as Record<string, unknown>)[name] : undefined;
}

/** Seconds as a sender writes them into a header, in milliseconds; `null` for anything else. */
export function secondsText(text: string): number | null {
  return /^\d{1,12}$/.test(text) ? Number(text) * 1_000 : null;
}

/** An instant out of a payload: seconds since the epoch, or ISO 8601. */
export function instantOf(value: unknown): Date | null {
  if (typeof value === "number") return new Date(value * 1_000);
  return typeof value === "string" ? new Date(value) : null;
}
