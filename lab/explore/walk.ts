import type { Choice } from "./choices.ts";

/** Faults are few and choices of them many: a walk that took each alike would spend its budget at the very beginning. */
export function walkPlace(choices: readonly Choice[], next: () => number): number {
  const weights = choices.map(({ isPlain, costs }) => (isPlain ? 4 : 1) * (costs === null ? 2 : 1));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let rest = next() * total;
  return Math.max(
    0,
    weights.findIndex((weight) => {
      rest -= weight;
      return rest < 0;
    }),
  );
}
