import { hash } from "node:crypto";
import { OncekeyError } from "./errors.ts";

/** One part of a digest's pre-image. `null` (absent) differs from every present part, the empty one included. */
export type FramedPart = string | Uint8Array | null;

const PRESENT = 5;
/** The most bytes of UTF-8 that one unit of a string takes. */
const UTF8_BYTES = 3;

/**
 * The pre-image of every digest in Oncekey: a version byte, then each part as a presence byte and, where present, its
 * length (32 bits, big endian) and bytes. Injective: two different lists of parts never give the same bytes. So it raises
 * `oncekey_value_unsupported` for text with a lone surrogate: UTF-8 has none, and all such texts would have the same bytes.
 */
export function frame(version: number, parts: readonly FramedPart[]): Uint8Array {
  return new Uint8Array(written(version, parts));
}

/** SHA-256 over the frame. Raises as {@link frame}. */
export function framedDigest(version: number, parts: readonly FramedPart[]): Uint8Array {
  // In one go, and by way of a string: a hash object, or memory outside of the heap for 32 bytes, costs more than the hashing.
  const latin1 = hash("sha256", written(version, parts), "binary");
  const digest = new Uint8Array(DIGEST_LENGTH);
  for (let at = 0; at < DIGEST_LENGTH; at++) digest[at] = latin1.charCodeAt(at);
  return digest;
}

const DIGEST_LENGTH = 32;

/** Frames are written here one after the other, each used before the next; memory of its own for each would be most of its cost. */
const scratch = Buffer.allocUnsafeSlow(16_384);

/** The frame, in memory that the next one takes. */
function written(version: number, parts: readonly FramedPart[]): Buffer {
  let most = 1;
  for (const part of parts)
    most += part === null ? 1 : PRESENT + part.length * (typeof part === "string" ? UTF8_BYTES : 1);
  // Text is written where it will stand: encoding each part by itself first costs more than hashing all of them.
  const out = most <= scratch.length ? scratch : Buffer.allocUnsafeSlow(most);
  out[0] = version;
  let at = 1;
  for (const part of parts) at = writePart(out, at, part);
  return out.subarray(0, at);
}

function writePart(out: Buffer, at: number, part: FramedPart): number {
  out[at] = part === null ? 0 : 1;
  if (part === null) return at + 1;
  const start = at + PRESENT;
  const length = writeContent(out, start, part);
  out.writeUInt32BE(length, at + 1);
  return start + length;
}

function writeContent(out: Buffer, at: number, part: string | Uint8Array): number {
  if (typeof part !== "string") {
    out.set(part, at);
    return part.length;
  }
  if (!part.isWellFormed()) throw illFormed();
  return out.write(part, at);
}

function illFormed(): OncekeyError {
  return new OncekeyError(
    "oncekey_value_unsupported",
    "A name or an id holds a lone surrogate, such as half of a cut emoji: it would be taken for every other one of that kind. " +
      "What was committed before is kept. Give well-formed text.",
  );
}
