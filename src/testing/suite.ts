import assert from "node:assert/strict";

/** The two functions of a test runner that a suite needs: vitest's, Jest's and `node:test`'s fit as they are. */
export interface SuiteRunner {
  describe(name: string, fn: () => void): unknown;
  it(name: string, fn: () => Promise<void>, timeoutMs?: number): unknown;
}

/** One promise of a port. The name is a sentence about behaviour, unique within its suite: limits refer to it. */
export interface SuiteCase<Harness> {
  readonly name: string;
  /** Heading that the case is listed under. */
  readonly group?: string;
  /** Longer than the runner's own limit where a case needs it, in milliseconds. */
  readonly timeoutMs?: number;
  run(harness: Harness): Promise<void>;
}

/** What a suite gets for each case: the implementation, made anew or emptied, and how to let go of it. */
export interface SuiteHarness {
  close(): Promise<void>;
}

/** How one implementation differs from its port. */
export interface SuiteOptions {
  /** Cases that this implementation cannot pass, each with the reason; listed with it instead of being run. */
  readonly limits?: Readonly<Record<string, string>>;
}

/** An exported contract suite: registers its cases, for one implementation, with a test runner. */
export type Suite<Harness extends SuiteHarness> = (
  runner: SuiteRunner,
  name: string,
  makeHarness: () => Promise<Harness>,
  options?: SuiteOptions,
) => void;

/**
 * Makes the contract suite of a port from its cases. Each case gets a harness of its own, closed when it ends. A case
 * named in `limits` is listed with its reason and not run; a limit that names no case fails, so that a renamed case is
 * never silently left out. Throws at once where two cases share a name.
 */
export function defineSuite<Harness extends SuiteHarness>(
  title: string,
  cases: readonly SuiteCase<Harness>[],
): Suite<Harness> {
  const names = new Set(cases.map((entry) => entry.name));
  assert.equal(names.size, cases.length, `Two cases of the suite "${title}" share a name.`);
  return (runner, name, makeHarness, { limits = {} } = {}) => {
    const register = (entry: SuiteCase<Harness>) => registerCase(runner, entry, makeHarness, limits[entry.name]);
    runner.describe(`${title}: ${name}`, () => {
      runner.it("names only cases of the suite in its limits", async () => {
        const unknown = Object.keys(limits).filter((limit) => !names.has(limit));
        assert.deepEqual(unknown, [], `The suite "${title}" has no such cases.`);
      });
      for (const group of new Set(cases.map((entry) => entry.group))) {
        const members = cases.filter((entry) => entry.group === group);
        if (group === undefined) members.forEach(register);
        else runner.describe(group, () => members.forEach(register));
      }
    });
  };
}

function registerCase<Harness extends SuiteHarness>(
  runner: SuiteRunner,
  entry: SuiteCase<Harness>,
  makeHarness: () => Promise<Harness>,
  limit: string | undefined,
): void {
  if (limit !== undefined) {
    runner.it(`${entry.name} (limit: ${limit})`, async () => {});
    return;
  }
  const run = async () => {
    const harness = await makeHarness();
    try {
      await entry.run(harness);
    } finally {
      await harness.close();
    }
  };
  if (entry.timeoutMs === undefined) runner.it(entry.name, run);
  else runner.it(entry.name, run, entry.timeoutMs);
}
