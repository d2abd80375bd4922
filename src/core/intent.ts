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
  /** The form in which the call was sent; code of another form must not settle it. */
  readonly form: RecoverForm;
  /** How long after its commit "none" may be believed, in milliseconds; `null`: no time was declared. */
  readonly settlesWithinMs: number | null;
}

/** The forms of `recover`, as they are stored. */
export type RecoverForm = "dedupes" | "cancel" | "settles" | "never";

/** A stored intent. `open` until its call's result is recorded (`settled`) or it was made impossible (`cancelled`). */
export interface Intent extends Omit<NewIntent, "form" | "settlesWithinMs"> {
  readonly state: "open" | "settled" | "cancelled";
  /** `null`: written by a release that did not store it. */
  readonly form: RecoverForm | null;
  /** Milliseconds since it was (last) committed, by the database's clock. */
  readonly ageMs: number;
  /** Milliseconds until "none" may be believed of it (0 or less: now), or `null`: no time was declared. */
  readonly settlesInMs: number | null;
}

/** All that is recorded for an entry. */
export interface Journal {
  readonly records: readonly JournalRecord[];
  readonly intents: readonly Intent[];
}

/**
 * How a derived key is spelled, all three from one digest: `base64url`: 43 characters, 256 bits; `uuid`: 36 characters,
 * RFC 9562 version 8, 122 bits; `hex`: 32 characters, 128 bits. Which provider takes which: `providerKeyLimits`.
 */
export type KeyForm = "base64url" | "uuid" | "hex";

/**
 * The key that one outside call carries: a function of the identity, the *stored* fingerprint, the call and its
 * generation. The fingerprint is part of it because after a purge the same client key may come with another payload,
 * which must not fetch the old authorization.
 */
export function derivedKey(
  entry: { id: Uint8Array; fingerprint: Uint8Array },
  call: string,
  generation: number,
  form: KeyForm = "base64url",
): string {
  const parts = [entry.id, entry.fingerprint, call, String(generation)];
  const digest = createHash("sha256").update(frame(DERIVED_KEY_VERSION, parts)).digest();
  if (form === "base64url") return digest.toString("base64url");
  return form === "uuid" ? uuidOf(digest) : digest.toString("hex", 0, 16);
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
  return uuidOf(
    createHash("sha256")
      .update(frame(DERIVED_UUID_VERSION, [seed, name]))
      .digest(),
  );
}

/** The first 122 free bits of a digest as a UUID of version 8. */
function uuidOf(digest: Buffer): string {
  const bytes = Buffer.from(digest.subarray(0, 16));
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
