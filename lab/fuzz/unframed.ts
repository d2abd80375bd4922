/**
 * The parts that a frame holds, as UTF-8 text: the reverse of `frame`, read from the layout that architecture.md names.
 * Raises `RangeError` where the bytes are no frame.
 */
export function unframed(bytes: Uint8Array): (string | null)[] {
  const frame = Buffer.from(bytes);
  const parts: (string | null)[] = [];
  for (let at = 1; at < frame.length; ) {
    if (frame[at++] === 0) {
      parts.push(null);
      continue;
    }
    const length = frame.readUInt32BE(at);
    if (at + 4 + length > frame.length) throw new RangeError("A part goes beyond the frame.");
    parts.push(frame.subarray(at + 4, at + 4 + length).toString());
    at += 4 + length;
  }
  return parts;
}
