/** One thing that must hold, and what was found where it does not. */
export interface Check {
  readonly name: string;
  readonly passed: boolean;
  readonly found: string;
}

/** Holds where nothing was found wrong. */
export function check(name: string, wrong: readonly unknown[]): Check {
  const found = wrong.length === 0 ? "" : `${wrong.length} wrong, the first: ${JSON.stringify(wrong[0])}`;
  return { name, passed: wrong.length === 0, found };
}

/** Holds where both are the same; counted as one thing. */
export function equalCheck(name: string, found: unknown, expected: unknown): Check {
  return check(name, found === expected ? [] : [{ found, expected }]);
}
