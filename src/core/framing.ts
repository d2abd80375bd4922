import { hash } from "node:crypto";

/** One part of a digest's pre-image. `null` (absent) differs from every present part, the empty one included. */
export type FramedPart = string | Uint8Array | null;

const PRESENT = 5;
/** The most bytes of UTF-8 that one unit of a string takes. */
const UTF8_BYTES = 3;

/**
 * The pre-image of every digest in Oncekey: a version byte, then each part as a presence byte and, where present, its
 * length (32 bits, big endian) and bytes. Injective: two different lists of parts never give the same bytes.
 */
export function frame(version: number, parts: readonly FramedPart[]): Uint8Array {
  return new Uint8Array(written(version, parts));
}

/** SHA-256 over the frame. */
export function framedDigest(version: number, parts: readonly FramedPart[]): Uint8Array {
  // In one go: a hash object that is made for one short text costs twice the hashing.
  return hash("sha256", written(version, parts), "buffer");
}

/** The frame in memory that is larger than it, and shared with others: not to be kept. */
function written(version: number, parts: readonly FramedPart[]): Buffer {
  let most = 1;
  for (const part of parts)
    most += part === null ? 1 : PRESENT + part.length * (typeof part === "string" ? UTF8_BYTES : 1);
  // Text is written where it will stand: encoding each part by itself first costs more than hashing all of them.
  const out = Buffer.allocUnsafe(most);
  out[0] = version;
  let at = 1;
  for (const part of parts) at = writePart(out, at, part);
  return out.subarray(0, at);
}

function writePart(out: Buffer, at: number, part: FramedPart): number {
  out[at] = part === null ? 0 : 1;
  if (part === null) return at + 1;
  const start = at + PRESENT;
  if (typeof part !== "string") out.set(part, start);
  const length = typeof part === "string" ? out.write(part, start) : part.length;
  out.writeUInt32BE(length, at + 1);
  return start + length;
}
