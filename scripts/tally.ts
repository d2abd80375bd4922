/** What was counted: tests and checks alike. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  /** One line per skip: what was not run, and why. */
  readonly skips: readonly string[];
}

/** Nothing counted yet. */
export const emptyTally: Tally = { passed: 0, failed: 0, skips: [] };

/** The sum of two counts. */
export function addTallies(a: Tally, b: Tally): Tally {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skips: [...a.skips, ...b.skips] };
}

/** Where nothing may be left out (CI), every skip is a failure. */
export function refuseSkips(tally: Tally): Tally {
  return { ...tally, failed: tally.failed + tally.skips.length, skips: [] };
}

/** The line that ends a run, alone on its line. */
export function tallyLine({ passed, failed, skips }: Tally): string {
  const skipped = skips.length === 0 ? "" : `, ${skips.length} skipped`;
  return `${passed} passed, ${failed} failed${skipped}`;
}
