/** One part of a digest's pre-image. `null` (absent) differs from every present part, the empty one included. */
export type FramedPart = string | Uint8Array | null;

const encoder = new TextEncoder();

/**
 * The pre-image of every digest in Oncekey: a version byte, then each part as a presence byte and, where present, its
 * length (32 bits, big endian) and bytes. Injective: two different lists of parts never give the same bytes.
 */
export function frame(version: number, parts: readonly FramedPart[]): Uint8Array {
  const encoded = parts.map((part) => (typeof part === "string" ? encoder.encode(part) : part));
  const size = encoded.reduce((sum, part) => sum + (part === null ? 1 : 5 + part.length), 1);
  const out = new Uint8Array(size);
  const view = new DataView(out.buffer);
  out[0] = version;
  let at = 1;
  for (const part of encoded) {
    out[at++] = part === null ? 0 : 1;
    if (part === null) continue;
    view.setUint32(at, part.length);
    out.set(part, at + 4);
    at += 4 + part.length;
  }
  return out;
}
