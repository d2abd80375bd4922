import { createHash } from "node:crypto";
import { type Producer, producerDigest } from "./delivery.ts";
import { frame } from "./framing.ts";
import type { SequenceNumber } from "./sequence.ts";

/** Version of the references' pre-image. Frozen: another layout gets another byte. */
const REFERENCE_VERSION = 1;

/**
 * What only this request has, for a unique column of the application: a function of the identity and the *stored*
 * fingerprint, so the same on every attempt and resume, and after a purge; another one where the key comes with another
 * payload. 43 characters of base64url.
 */
export function entryReference(entry: { readonly id: Uint8Array; readonly fingerprint: Uint8Array }): string {
  return Buffer.from(digest([entry.id, entry.fingerprint])).toString("base64url");
}

/** The same for a delivery: its digest. 43 characters of base64url. */
export function deliveryReference(deliveryDigest: Uint8Array): string {
  return Buffer.from(deliveryDigest).toString("base64url");
}

/** What stands for a numbered message where a delivery has its digest. */
export function numberedDigest(message: Producer & SequenceNumber): Uint8Array {
  return digest([producerDigest(message), String(message.epoch), String(message.sequence)]);
}

function digest(parts: readonly (string | Uint8Array)[]): Uint8Array {
  return createHash("sha256").update(frame(REFERENCE_VERSION, parts)).digest();
}
