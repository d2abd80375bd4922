import type { BodyStore } from "oncekey";

/** A body store in memory that shows what it holds, and can be told to fail. */
export interface MemoryBodies extends BodyStore {
  readonly objects: Map<string, Uint8Array>;
  /** Raised by every method while it is set. */
  failure: Error | null;
}

/** Makes an empty one. */
export function memoryBodies(): MemoryBodies {
  const objects = new Map<string, Uint8Array>();
  const bodies: MemoryBodies = {
    name: "memory",
    objects,
    failure: null,
    async put(pointer, content, length) {
      if (bodies.failure !== null) throw bodies.failure;
      const chunks: Uint8Array[] = [];
      for await (const chunk of content) chunks.push(new Uint8Array(chunk));
      const whole = new Uint8Array(Buffer.concat(chunks));
      if (whole.length !== length) throw new Error(`${whole.length} bytes instead of ${length}`);
      objects.set(pointer, whole);
    },
    async get(pointer) {
      if (bodies.failure !== null) throw bodies.failure;
      const whole = objects.get(pointer);
      return whole === undefined ? null : inChunks(whole);
    },
    async remove(pointer) {
      if (bodies.failure !== null) throw bodies.failure;
      objects.delete(pointer);
    },
  };
  return bodies;
}

/** The bytes in chunks of an odd length. */
export async function* inChunks(bytes: Uint8Array, size = 10_007): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
