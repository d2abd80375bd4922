import { matchesGlob } from "node:path";

/** A part of the sources, and the tests that are to notice a change of it. */
export interface Area {
  readonly name: "core" | "engine";
  /** What is mutated, as globs. */
  readonly files: readonly string[];
  /**
   * Unit tests that need no server: Stryker runs them thousands of times. The quick ones first, since the first failure ends
   * a run; the last place that names a file is its place.
   */
  readonly tests: readonly string[];
  /** Tests that are long and notice only what changes in some files: run where one of these is asked for, after all others. */
  readonly longTests?: readonly { readonly of: string; readonly tests: readonly string[] }[];
}

const ENGINE = "src/engine/";

/** What is mutated where nothing else is asked for. */
export const AREAS: readonly Area[] = [
  {
    name: "core",
    files: ["src/core/**/*.ts"],
    // Those that load nothing but core: the engine's would notice much as well, at many times the cost of each mutant.
    tests: ["core-*", "mutants-{core,entry,rules}"],
  },
  {
    name: "engine",
    files: ["src/engine/**/*.ts"],
    tests: [
      "engine-*",
      "mutants-*",
      "engine-{calls,capture,lost-claims,lost-lease,misuse,phases,recovery-matrix,run-again,settling,store-down}",
      "engine-{transaction,unawaited,unawaited-failure,uncompared,within}",
      "inbox-*",
      "sweeper-*",
      "engine-{changed-code,recover-changed,rollout,schedules,sealed,start}",
      "webhook-receive",
      "relay-*",
      "kafka-producer",
    ],
    longTests: [
      {
        of: `${ENGINE}{attempt-end,call,call-tries,context,phases,reconcile,sweeping}.ts`,
        tests: ["engine-giving-up"],
      },
      {
        of: `${ENGINE}{context,definition*,execute,oncekey,request,settings,transaction}.ts`,
        tests: ["late-retries"],
      },
      { of: `${ENGINE}{call-tries,direct-request,fetch*,phases}.ts`, tests: ["engine-{fetch,fetch-unsent}"] },
      {
        of: `${ENGINE}{attempt-end,capture,complete,decided-turn,execute,held-bytes,settled-response,stored-*,sweeping,transaction,until-aborted,within}.ts`,
        tests: ["engine-{stored-outcome,hanging-bodies,held-bytes}"],
      },
      // They serve HTTP, which most of the engine knows nothing of.
      {
        of: `${ENGINE}{capture,execute,held-bytes,observed-*,owned-attempt,settled-response,settings,stored-*,until-aborted}.ts`,
        tests: ["http-{gate,storing-turns}", "http-{capture-ends,spool}"],
      },
    ],
  },
];

/** Tests of types have nothing to run; that of the planted faults reads the sources, which are all changed here. */
const LEFT_OUT = ["*-types*", "mutants-canaries"];

/** What vitest includes for some files of an area, in the order in which it is to run it, and what it leaves out. */
export function includesOf(
  { tests, longTests = [] }: Area,
  files: readonly string[],
): { include: string[]; exclude: string[] } {
  // A file that is given as a glob may be any of them.
  const isAsked = ({ of }: { readonly of: string }) =>
    files.some((file) => file.includes("*") || matchesGlob(file, of));
  const testsOf = (long: typeof longTests) => long.flatMap((one) => one.tests);
  return {
    include: [...tests, ...testsOf(longTests.filter(isAsked))].map(pathOf),
    exclude: [...LEFT_OUT, ...testsOf(longTests.filter((long) => !isAsked(long)))].map(pathOf),
  };
}

const pathOf = (test: string): string => `test/unit/${test}.test.ts`;
