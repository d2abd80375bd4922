import type { Left } from "./choices.ts";

/** The states that were explored, each with the budgets that were left there. */
export interface Visited {
  /** `false`: it was explored before, with at least as much left. Else it is remembered, and is to be explored. */
  enter(digest: string, left: Left): boolean;
  readonly size: number;
}

/** Makes an empty set of states. Without reduction everything is always new, and only counted. */
export function createVisited(reduces: boolean): Visited {
  const known = new Map<string, (readonly number[])[]>();
  return {
    enter(digest, left) {
      const now = Object.values(left);
      const before = known.get(digest);
      if (before === undefined) {
        known.set(digest, [now]);
        return true;
      }
      if (before.some((other) => covers(other, now))) return !reduces;
      // Those that this one covers need not be kept.
      known.set(digest, [...before.filter((other) => !covers(now, other)), now]);
      return true;
    },
    get size() {
      return known.size;
    },
  };
}

function covers(more: readonly number[], less: readonly number[]): boolean {
  return more.every((count, index) => count >= (less[index] ?? 0));
}
