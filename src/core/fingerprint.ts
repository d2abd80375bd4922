import { createHmac, timingSafeEqual } from "node:crypto";
import { OncekeyError } from "./errors.ts";
import { type FramedPart, frame, framedDigest } from "./framing.ts";

/**
 * What a retry must match: the request as it travelled (`wire`), its validated input (`input`), or nothing at all
 * (`none`, for dialects such as SQS that compare nothing).
 */
export type Compare = "wire" | "input" | "none";

/** Version of the pre-images below. Frozen: another layout gets another byte. */
const FINGERPRINT_VERSION = 1;

/**
 * How a fingerprint was made; stored in front of its digest so that it can be compared by the rule it was made under.
 * `secretId` 0 is plain SHA-256; 1–255 name a secret of the ring (HMAC-SHA-256).
 */
export interface FingerprintForm {
  readonly version: number;
  readonly compare: Compare;
  readonly secretId: number;
}

/** A secret of the ring. The id is stored with each fingerprint, so that secrets can rotate while old entries live. */
export interface FingerprintSecret {
  /** 1–255, never reused for another secret. */
  readonly id: number;
  readonly secret: string | Uint8Array;
}

const COMPARE_BYTE: Record<Compare, number> = { wire: 1, input: 2, none: 3 };
const FORM_LENGTH = 3;

/** Digests under a ring of secrets. The first secret makes new fingerprints; the others are only compared with. */
export interface FingerprintRing {
  /** The form that new entries get. */
  form(compare: Compare): FingerprintForm;
  /**
   * The form under which concurrent runs find each other (the lock before the row exists). Never keyed: instances in the
   * middle of a rotation, each with another newest secret, must still agree that two requests are equal. It is not stored.
   */
  lockForm(compare: Compare): FingerprintForm;
  /** Whether this process can compute fingerprints of that form. */
  understands(form: FingerprintForm): boolean;
  /** Form and digest: 35 bytes. */
  fingerprint(form: FingerprintForm, parts: readonly FramedPart[]): Uint8Array;
}

/** Builds the ring. Raises `oncekey_config_invalid` for ids outside 1–255 or used twice. */
export function fingerprintRing(secrets: readonly FingerprintSecret[] = []): FingerprintRing {
  const byId = new Map<number, string | Uint8Array | null>([[0, null]]);
  for (const { id, secret } of secrets) {
    if (!Number.isInteger(id) || id < 1 || id > 255 || byId.has(id) || secret.length === 0) {
      throw new OncekeyError(
        "oncekey_config_invalid",
        "Fingerprint secrets need distinct ids from 1 to 255 and a non-empty secret. Change the ids, never reuse one for another secret.",
      );
    }
    byId.set(id, secret);
  }
  const newest = secrets[0]?.id ?? 0;
  const form = (compare: Compare, secretId: number) => ({ version: FINGERPRINT_VERSION, compare, secretId });
  return {
    form: (compare) => form(compare, newest),
    lockForm: (compare) => form(compare, 0),
    understands: (asked) => asked.version === FINGERPRINT_VERSION && byId.has(asked.secretId),
    fingerprint(asked, parts) {
      const secret = byId.get(asked.secretId) ?? null;
      const all = [asked.compare, ...parts];
      const digest =
        secret === null
          ? framedDigest(asked.version, all)
          : createHmac("sha256", secret).update(frame(asked.version, all)).digest();
      const out = new Uint8Array(FORM_LENGTH + digest.length);
      out.set([asked.version, COMPARE_BYTE[asked.compare], asked.secretId]);
      out.set(digest, FORM_LENGTH);
      return out;
    },
  };
}

/** The form that a stored fingerprint was made under, or `null` where this version cannot know (a newer one wrote it). */
function formOf(fingerprint: Uint8Array): FingerprintForm | null {
  const [version, compareByte, secretId] = fingerprint;
  const compare = (Object.keys(COMPARE_BYTE) as Compare[]).find((name) => COMPARE_BYTE[name] === compareByte);
  if (version === undefined || secretId === undefined || compare === undefined) return null;
  return { version, compare, secretId };
}

const DIGEST_LENGTH = 32;

/*
 * Behind the compared part a stored fingerprint may have a tail that no retry has to match. It is there for what is derived
 * from a fingerprint (keys of outside calls, `reference`): those must differ where the compared part alone would not.
 */

/**
 * A fingerprint under `none`: compared is the operation, and the digest of the content is its tail. A key that comes again
 * with another content after its window must not find the earlier one's rows, or authorization.
 */
export function uncomparedContent(compared: Uint8Array, content: Uint8Array): Uint8Array {
  return withTail(compared, content.subarray(FORM_LENGTH));
}

/**
 * The fingerprint of a run that follows a forgotten failure: a system that dedupes would answer it with what it answered
 * then. `seed` is the failed entry's.
 */
export function afterForgotten(fingerprint: Uint8Array, seed: Uint8Array): Uint8Array {
  return withTail(fingerprint, seed);
}

function withTail(fingerprint: Uint8Array, tail: Uint8Array): Uint8Array {
  const out = new Uint8Array(fingerprint.length + tail.length);
  out.set(fingerprint);
  out.set(tail, fingerprint.length);
  return out;
}

/** The part of a fingerprint that a retry must match. */
export function comparedPart(fingerprint: Uint8Array): Uint8Array {
  return fingerprint.subarray(0, FORM_LENGTH + DIGEST_LENGTH);
}

/** Equality in constant time, so that timing tells nothing about a stored digest. */
export function sameDigest(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/**
 * One request, as far as it must be compared. The engine asks for digests only when it needs them: a retry whose bytes
 * are equal is recognised by `wireDigest` and never canonicalised or validated again.
 */
export interface RequestProof {
  readonly compare: Compare;
  readonly ring: FingerprintRing;
  /** Digest of the request's exact bytes (form-prefixed, like a fingerprint), or `null` where there are none (`once.run`). */
  readonly wireDigest: Uint8Array | null;
  /**
   * The fingerprint under `form`. For `input` forms this validates; raises `idempotency_request_invalid` where the
   * request cannot be canonicalised or validated.
   */
  fingerprint(form: FingerprintForm): Promise<Uint8Array>;
}

/** What comparing a request with a stored entry gave. */
export type Match = "equal" | "different" | "version_unknown";

/**
 * Compares under the rule the entry was made with. Equal wire digests settle it at once; a form that this process does
 * not know settles nothing (a newer version wrote the entry: it may neither be run nor refused).
 */
export async function matchRequest(
  entry: { readonly fingerprint: Uint8Array; readonly wireDigest: Uint8Array | null },
  proof: RequestProof,
): Promise<Match> {
  if (entry.wireDigest !== null && proof.wireDigest !== null && sameDigest(entry.wireDigest, proof.wireDigest)) {
    return "equal";
  }
  const form = formOf(entry.fingerprint);
  if (form === null || !proof.ring.understands(form)) return "version_unknown";
  try {
    const asked = comparedPart(await proof.fingerprint(form));
    return sameDigest(comparedPart(entry.fingerprint), asked) ? "equal" : "different";
  } catch (error) {
    // The stored request was valid; one that cannot even be read is another request.
    if (error instanceof OncekeyError && error.code === "idempotency_request_invalid") return "different";
    throw error;
  }
}
