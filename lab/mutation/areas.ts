/** A part of the sources, and the tests that are to notice a change of it. */
export interface Area {
  readonly name: "core" | "engine";
  /** What is mutated, as globs. */
  readonly files: readonly string[];
  /** Unit tests that need no server: Stryker runs them thousands of times. */
  readonly tests: readonly string[];
}

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
      "http-{capture-ends,gate,spool,storing-turns}",
      "inbox-*",
      "kafka-producer",
      "late-retries",
      "mutants-*",
      "relay-*",
      "sweeper-*",
      "webhook-receive",
    ],
  },
];

/** Tests of types have nothing to run; that of the planted faults reads the sources, which are all changed here. */
const LEFT_OUT = ["test/unit/*-types*.test.ts", "test/unit/mutants-canaries.test.ts"];

/** What vitest includes for an area, and what it leaves out. */
export function includesOf({ tests }: Area): { include: string[]; exclude: string[] } {
  return { include: tests.map((name) => `test/unit/${name}.test.ts`), exclude: LEFT_OUT };
}
