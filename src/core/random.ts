import { randomBytes } from "node:crypto";

/** Where fences, seeds and jitter come from; replaced by a seeded one where runs must be repeatable. */
export interface Random {
  /** Unpredictable bytes: a fence is handed out once, also across crashes (a counter would not be). */
  bytes(length: number): Uint8Array;
  /** A number in [0, 1), for jitter. */
  unit(): number;
}

/** The operating system's randomness. */
export const systemRandom: Random = {
  bytes: (length) => randomBytes(length),
  unit: () => Math.random(),
};
