/** Runs vitest in this process and counts what it did, errors outside tests included. */
import { type InlineConfig, startVitest, type TestCase, type TestModule, type TestSuite } from "vitest/node";
import { emptyTally, refuseSkips, type Tally } from "./tally.ts";

type Reporters = NonNullable<InlineConfig["reporters"]>;

/**
 * Runs the test files whose paths contain one of the filters, with the usual live report. A file or suite that broke
 * outside its tests counts as one failure: vitest marks the tests in it as skipped. With CI=true skips are failures.
 * `root`: the folder whose vitest.config.ts applies; an empty `reporters` entry prints nothing.
 */
export async function runVitest(filters: string[], root: string, reporters: Reporters = ["default"]): Promise<Tally> {
  const vitest = await startVitest("test", filters, { watch: false, root, reporters });
  const modules = vitest.state.getTestModules();
  const stray = vitest.state.getUnhandledErrors().length;
  await vitest.close();
  const tallied = countModules(modules, stray);
  const missing = filters.filter((filter) => !modules.some(({ moduleId }) => moduleId.includes(filter)));
  for (const filter of missing) console.error(`No test file in ${filter}`);
  const tally = { ...tallied, failed: tallied.failed + missing.length };
  if (process.env.CI !== "true") return tally;
  for (const skip of tally.skips) console.error(`A skip is a failure here: ${skip}`);
  return refuseSkips(tally);
}

function countModules(modules: readonly TestModule[], stray: number): Tally {
  const suites: (TestModule | TestSuite)[] = modules.flatMap((module) => [module, ...module.children.allSuites()]);
  const broken = suites.filter((suite) => suite.errors().length > 0).length;
  const cases = modules.flatMap((module) => [...module.children.allTests()]);
  const count = (state: string) => cases.filter((test) => test.result().state === state).length;
  const skips = cases.flatMap(skipOf);
  // "pending": vitest gave up before the test ran.
  return { ...emptyTally, passed: count("passed"), failed: count("failed") + count("pending") + broken + stray, skips };
}

function skipOf(test: TestCase): string[] {
  const result = test.result();
  if (result.state !== "skipped") return [];
  return [`${test.fullName}: ${result.note ?? "no reason given"}`];
}
