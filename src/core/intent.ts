import { createHash } from "node:crypto";
import { frame } from "./framing.ts";

/** Version of the derived key's pre-image. Frozen: another layout gets another byte. */
const DERIVED_KEY_VERSION = 1;

/** Something already recorded for an entry: a committed phase, or the result of an outside call. */
export interface JournalRecord {
  /** 0, 1, 2 …: the order in which the operation reached them. */
  readonly position: number;
  readonly kind: "phase" | "call";
  readonly name: string;
  /** The value it gave (value codec). */
  readonly value: Uint8Array;
}

/** The row that says an outside call is about to be made; committed, fenced, before the call. */
export interface NewIntent {
  readonly call: string;
  /** 1, 2 …: the next one begins only after the one before was cancelled at the other side. */
  readonly generation: number;
  readonly derivedKey: string;
  /** SHA-256 of the encoded request: arguments that changed on resume are caught by it. */
  readonly requestDigest: Uint8Array;
}

/** A stored intent. `open` until its call's result is recorded (`settled`) or it was made impossible (`cancelled`). */
export interface Intent extends NewIntent {
  readonly state: "open" | "settled" | "cancelled";
  /** Milliseconds since it was (last) committed, by the database's clock. */
  readonly ageMs: number;
}

/** All that is recorded for an entry. */
export interface Journal {
  readonly records: readonly JournalRecord[];
  readonly intents: readonly Intent[];
}

/**
 * The key that one outside call carries: a function of the identity, the *stored* fingerprint, the call and its
 * generation. The fingerprint is part of it because after a purge the same client key may come with another payload,
 * which must not fetch the old authorization. 43 characters of base64url, within what providers accept.
 */
export function derivedKey(
  entry: { id: Uint8Array; fingerprint: Uint8Array },
  call: string,
  generation: number,
): string {
  const parts = [entry.id, entry.fingerprint, call, String(generation)];
  return createHash("sha256").update(frame(DERIVED_KEY_VERSION, parts)).digest("base64url");
}

/** SHA-256 of a call's encoded request. */
export function requestDigest(request: Uint8Array): Uint8Array {
  return createHash("sha256").update(request).digest();
}

/** Version of the derived UUID's pre-image. Frozen: another layout gets another byte. */
const DERIVED_UUID_VERSION = 1;

/**
 * A UUID (RFC 9562, version 8) for a name within one entry: a function of the entry's random seed, so it is the same on
 * every resume and unpredictable elsewhere.
 */
export function derivedUuid(seed: Uint8Array, name: string): string {
  const digest = createHash("sha256")
    .update(frame(DERIVED_UUID_VERSION, [seed, name]))
    .digest();
  digest[6] = ((digest[6] as number) & 0x0f) | 0x80;
  digest[8] = ((digest[8] as number) & 0x3f) | 0x80;
  const hex = digest.toString("hex", 0, 16);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
