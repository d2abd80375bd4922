/** The largest block that small pieces are gathered in. */
const BLOCK_BYTES = 16_384;

/** Pieces of bytes, gathered so that a thousand tiny ones cost no thousand objects. */
export interface Blocks {
  /** Bytes in it. */
  readonly length: number;
  /** How much more memory {@link push} of so many bytes takes. */
  roomFor(bytes: number): number;
  /** Adds a copy. */
  push(bytes: Uint8Array): void;
  /** Takes everything out; `capacity`: the memory it takes. */
  take(): { readonly parts: readonly Uint8Array[]; readonly capacity: number };
  /** All bytes in one piece, in the memory they already take where that is possible. */
  whole(): Uint8Array;
}

/** An empty list of pieces. */
export function createBlocks(): Blocks {
  let parts: Uint8Array[] = [];
  let length = 0;
  let capacity = 0;
  /** The block that has room left. */
  let tail = new Uint8Array();
  let tailUsed = 0;

  const roomFor = (bytes: number): number => {
    const over = bytes - (tail.length - tailUsed);
    // Grows with what is there already: one answer of ten bytes takes ten.
    return over <= 0 ? 0 : Math.max(over, Math.min(length, BLOCK_BYTES));
  };

  const filled = (): readonly Uint8Array[] => {
    if (tailUsed === tail.length) return parts;
    return [...parts.slice(0, -1), tail.subarray(0, tailUsed)];
  };

  return {
    get length() {
      return length;
    },
    roomFor,
    push(bytes) {
      const room = roomFor(bytes.length);
      const first = Math.min(bytes.length, tail.length - tailUsed);
      tail.set(bytes.subarray(0, first), tailUsed);
      tailUsed += first;
      length += bytes.length;
      if (room === 0) return;
      tail = new Uint8Array(room);
      tail.set(bytes.subarray(first));
      tailUsed = bytes.length - first;
      parts.push(tail);
      capacity += room;
    },
    take() {
      const taken = { parts: filled(), capacity };
      parts = [];
      tail = new Uint8Array();
      length = capacity = tailUsed = 0;
      return taken;
    },
    whole() {
      const [only] = parts;
      if (only !== undefined && parts.length === 1 && tailUsed === only.length) return only;
      const all = joined(filled(), length);
      parts = [all];
      tail = all;
      tailUsed = length;
      return all;
    },
  };
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
