import { randomOf } from "../support/random.ts";

/** `size` of the items, chosen by a seed, in their own order: the same seed chooses the same ones. */
export function sampled<T>(items: readonly T[], size: number, seed: number): T[] {
  const { unit } = randomOf(seed, "sample");
  const drawn = items.map((item, at) => ({ item, at, draw: unit() })).sort((a, b) => a.draw - b.draw);
  return drawn
    .slice(0, size)
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
