import { seeded } from "../../src/testing/seeded.ts";

/** A seeded source of numbers: the same seed gives the same numbers, on every machine. */
export interface Random {
  /** From 0 to below 1. */
  unit(): number;
  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number;
  /** One of them. Raises where there is none. */
  pick<T>(from: readonly T[]): T;
  /** All of them in another order. */
  shuffled<T>(from: readonly T[]): T[];
}

/** The numbers of a seed and of a purpose: what one purpose draws leaves all others as they are. */
export function randomOf(seed: number, ...purpose: readonly (string | number)[]): Random {
  const unit = seeded(hash(`${seed}/${purpose.join("/")}`));
  const between = (least: number, most: number) => least + Math.floor(unit() * (most - least + 1));
  return {
    unit,
    between,
    pick<T>(from: readonly T[]): T {
      const index = between(0, from.length - 1);
      if (index < 0 || index >= from.length) throw new Error("There is nothing to pick from.");
      return from[index] as T;
    },
    shuffled<T>(from: readonly T[]): T[] {
      const drawn = from.map((one) => [unit(), one] as const);
      return drawn.sort(([a], [b]) => a - b).map(([, one]) => one);
    },
  };
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const char of text) value = Math.imul(value ^ (char.codePointAt(0) ?? 0), 0x01000193);
  return value;
}
