import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { transform } from "esbuild";
import { repositoryRoot } from "../../scripts/check.ts";
import { type Area, includesOf } from "./areas.ts";

/** What one run of Stryker is to do. */
export interface MutationRun {
  readonly area: Area;
  /** Globs in the place of the area's own. */
  readonly files: readonly string[];
  readonly jobs: number;
  /** Whether code that runs once, when its module is loaded, is mutated too: each such mutant costs a run of all tests. */
  readonly statics: boolean;
}

/** Where earlier results lie; git does not keep them. Removing the folder makes the next run a full one. */
const KEPT = ".data/mutation";

/** Where Stryker writes its report, relative to the copy. */
export const REPORT = "mutation-report.json";

/** Name of the configuration in the copy. */
export const CONFIG = "stryker.config.json";

const VITEST_CONFIG = "vitest.mutation.config.ts";
const PROSE = "stryker-prose.mjs";

/** Writes into a copy of the repository what Stryker needs to run there. */
export async function setUp(root: string, run: MutationRun): Promise<void> {
  await mkdir(join(repositoryRoot, KEPT), { recursive: true });
  await writeFile(join(root, VITEST_CONFIG), vitestConfig(run));
  await writeFile(join(root, PROSE), await plainProse());
  await writeFile(join(root, CONFIG), JSON.stringify(strykerConfig(run), null, 2));
}

function vitestConfig({ area }: MutationRun): string {
  // Loading the same modules anew for each test file would be most of a mutant's time.
  const test = { ...includesOf(area), testTimeout: 20_000, pool: "threads", maxWorkers: 1, isolate: false };
  const conditions = ["oncekey-source"];
  return `export default ${JSON.stringify({ resolve: { conditions }, ssr: { resolve: { conditions } }, test })};\n`;
}

/** Stryker's processes load plugins without our loader of TypeScript. */
async function plainProse(): Promise<string> {
  const source = await readFile(join(repositoryRoot, "lab/mutation/prose.ts"), "utf8");
  return (await transform(source, { loader: "ts", format: "esm" })).code;
}

function strykerConfig({ area, files, jobs, statics }: MutationRun) {
  return {
    testRunner: "vitest",
    plugins: ["@stryker-mutator/vitest-runner", `./${PROSE}`],
    ignorers: ["prose"],
    vitest: { configFile: VITEST_CONFIG },
    coverageAnalysis: "perTest",
    // The copy is ours: another one inside of it would save nobody anything.
    inPlace: true,
    mutate: files,
    ignoreStatic: !statics,
    concurrency: jobs,
    // On a busy machine a test may take long and come to its end all the same. Half as much again as the tests took by
    // themselves is added; what loops for ever costs the whole of it.
    timeoutMS: 10_000,
    incremental: true,
    incrementalFile: join(repositoryRoot, KEPT, `${area.name}.json`),
    reporters: ["json", "progress-append-only"],
    jsonReporter: { fileName: REPORT },
    allowConsoleColors: false,
  };
}
