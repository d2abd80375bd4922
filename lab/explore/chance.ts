import type { Random } from "../../src/core/random.ts";
import { seeded } from "../../src/testing/seeded.ts";
import { digestOf } from "./digest.ts";

/** A stream of numbers in [0, 1) that a text decides. */
export function streamOf(seed: string): () => number {
  return seeded(Buffer.from(digestOf(seed), "base64").readUInt32LE(0));
}

/**
 * Randomness of one process, the same each time it takes the same steps. Jitter is a constant: which of two pauses ends
 * first is the scheduler's choice, and instants that differ by nothing but chance would only multiply the states.
 */
export function seededRandom(seed: string): Random {
  const next = streamOf(seed);
  return {
    bytes: (length) => Uint8Array.from({ length }, () => Math.floor(next() * 256)),
    unit: () => 0.5,
  };
}
