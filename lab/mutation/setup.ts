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
const BUNDLER = "stryker-bundler.mjs";
const UNTIL_NOTICED = "stryker-until-noticed.mjs";

/** Writes into a copy of the repository what Stryker needs to run there. */
export async function setUp(root: string, run: MutationRun): Promise<void> {
  await mkdir(join(repositoryRoot, KEPT), { recursive: true });
  await writeFile(join(root, VITEST_CONFIG), vitestConfig(run));
  await writeFile(join(root, PROSE), await plain("prose.ts"));
  await writeFile(join(root, BUNDLER), await plain("bundled.ts"));
  await writeFile(join(root, UNTIL_NOTICED), untilNoticed());
  await writeFile(join(root, CONFIG), JSON.stringify(strykerConfig(run), null, 2));
}

function vitestConfig({ area, files }: MutationRun): string {
  const includes = includesOf(area, files);
  // Loading the same modules anew for each test file would be most of a mutant's time.
  const test = {
    ...includes,
    testTimeout: 20_000,
    pool: "threads",
    maxWorkers: 1,
    isolate: false,
    setupFiles: [`./${UNTIL_NOTICED}`],
  };
  const conditions = ["oncekey-source"];
  const config = { resolve: { conditions }, ssr: { resolve: { conditions } }, test };
  return `import { matchesGlob, relative } from "node:path";
import { BUNDLED, bundledSources } from "./${BUNDLER}";
const config = ${JSON.stringify(config)};
// By the last place that names a file: the list has the quick ones first, and the first failure ends a mutant's run.
const placeOf = ({ moduleId }) =>
  config.test.include.findLastIndex((glob) => matchesGlob(relative(process.cwd(), moduleId), glob));
class InOrder {
  shard = (files) => files;
  sort = async (files) => files.toSorted((a, b) => placeOf(a) - placeOf(b));
}
config.test.sequence = { sequencer: InOrder };
config.test.server = { deps: { external: [BUNDLED] } };
config.plugins = [await bundledSources(process.cwd())];
export default config;
`;
}

/**
 * What runs before each test file. The first failure skips all tests that are left, but their files would still be loaded,
 * and that is most of the time that a noticed mutant takes.
 */
function untilNoticed(): string {
  return `import { afterEach, inject } from "vitest";
const mutant = inject("mode") === "mutant" ? inject("activeMutant") : null;
if (mutant !== null && globalThis.noticedMutant === mutant) throw new Error("The mutant was noticed.");
afterEach(({ task }) => {
  if (task.result?.state === "fail") globalThis.noticedMutant = mutant;
});
`;
}

/** Stryker's processes load modules without our loader of TypeScript. */
async function plain(name: string): Promise<string> {
  const source = await readFile(join(repositoryRoot, "lab/mutation", name), "utf8");
  return (await transform(source, { loader: "ts", format: "esm" })).code;
}

function strykerConfig({ area, files, jobs, statics }: MutationRun) {
  return {
    testRunner: "vitest",
    plugins: ["@stryker-mutator/vitest-runner", `./${PROSE}`],
    ignorers: ["prose"],
    // The tests of an area are known: to look up which of them load a file would take longer than most mutants.
    vitest: { configFile: VITEST_CONFIG, related: false },
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
