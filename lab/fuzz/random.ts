/** Numbers that look random and come again with their seed. */
export interface Random {
  /** A whole number from 0 to `limit` − 1; 0 where `limit` is below 1. */
  below(limit: number): number;
  /** One of them. Raises `RangeError` for an empty list. */
  pick<T>(list: readonly T[]): T;
}

/** A generator (splitmix32) for a seed. Not for secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  };
  const below = (limit: number): number => (limit < 1 ? 0 : Math.floor((next() / 0x1_0000_0000) * limit));
  return {
    below,
    pick(list) {
      const found = list[below(list.length)];
      if (found === undefined) throw new RangeError("Nothing to pick from.");
      return found;
    },
  };
}

/** A seed of its own for each name, so that targets do not share their luck. */
export function seedFor(seed: number, name: string): number {
  let hash = seed >>> 0;
  for (const char of name) hash = (Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193) + 1) >>> 0;
  return hash;
}
