import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ByTest } from "./canary.ts";
import { runNode } from "./program.ts";
import { firstLine, type Verdict } from "./verdict.ts";

const LIMIT_MS = 150_000;
const CONFIG = "vitest.canaries.config.ts";

/** The project's own configuration without its brokers and programs: they would cost seconds a canary. */
const CONFIG_TEXT = `import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { conditions: ["oncekey-source"] },
  ssr: { resolve: { conditions: ["oncekey-source"] } },
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    pool: "forks",
    maxWorkers: 1,
  },
});
`;

/** The part of vitest's JSON report that counts here. */
interface Report {
  readonly testResults: readonly {
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

type Result = Report["testResults"][number]["assertionResults"][number];

/** Makes a copy of the repository ready for {@link tryTests}. */
export async function prepareTests(root: string): Promise<void> {
  await writeFile(join(root, CONFIG), CONFIG_TEXT);
}

/** What only code that does not even run would say; and vitest's own words for a test that came to no end. */
const CRASH =
  /^(?:SyntaxError|ReferenceError)|is not a function|Cannot find (?:module|package)|Transform failed|STACK_TRACE_ERROR|timed out in/;

/**
 * Runs tests of one file and says of each what it found. `caught`: a test of that name failed, by an expectation and not
 * by a crash or a time-out; `broken`: none ran, or it fell for another reason.
 */
export async function tryTests(root: string, tests: readonly ByTest[], env: NodeJS.ProcessEnv): Promise<Verdict[]> {
  const [{ test: file } = { test: "" }] = tests;
  const results = await run(root, file, tests, env);
  return tests.map((one) => (typeof results === "string" ? { kind: "broken", why: results } : verdictOf(one, results)));
}

async function run(
  root: string,
  file: string,
  tests: readonly ByTest[],
  env: NodeJS.ProcessEnv,
): Promise<Result[] | string> {
  const output = join(root, ".canary-report.json");
  await rm(output, { force: true });
  const pattern = tests.map(patternOf).join("|");
  const flags = ["--config", CONFIG, "--root", root, "--reporter=json", `--outputFile=${output}`, "-t", pattern];
  const args = ["node_modules/vitest/vitest.mjs", "run", file, ...flags];
  const ended = await runNode(args, { cwd: root, limitMs: LIMIT_MS, env });
  if (ended.code === null) return `no end within ${LIMIT_MS / 1_000} s`;
  const text = await readFile(output, "utf8").catch(() => null);
  if (text === null) return `no report: ${firstLine(ended.output)}`;
  const { testResults } = JSON.parse(text) as Report;
  const unloaded = testResults.find(({ message, assertionResults }) => message !== "" && assertionResults.length === 0);
  if (unloaded !== undefined) return `the file did not load: ${firstLine(unloaded.message)}`;
  return testResults.flatMap(({ assertionResults }) => assertionResults);
}

/** A title as a regular expression's source. */
function patternOf({ title }: ByTest): string {
  return title.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("…", ".*");
}

/** What the results of a test file say of one of its tests (see {@link tryTests}). */
export function verdictOf(test: ByTest, results: readonly Result[]): Verdict {
  const pattern = new RegExp(patternOf(test));
  const named = results.filter(({ fullName, status }) => pattern.test(fullName) && status !== "skipped");
  if (named.length === 0) return { kind: "broken", why: "no test of that name ran" };
  const failed = named.filter(({ status }) => status === "failed");
  if (failed.length === 0) return { kind: "clean" };
  const messages = failed.map(({ failureMessages }) => firstLine(failureMessages[0] ?? "", 160));
  const telling = messages.find((message) => !CRASH.test(message));
  return telling === undefined
    ? { kind: "broken", why: `it crashed: ${messages[0]}` }
    : { kind: "caught", how: telling };
}
