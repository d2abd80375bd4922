/**
 * `npm test`: every check and every test layer, then the plain line `N passed, N failed`. A check (lint, types, …)
 * counts as one test. `node scripts/test.ts unit conformance` runs only these layers; `checks` is a layer as well.
 *
 * A test may skip where a server it needs is not there, and says why; with CI=true such a skip is a failure.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { repositoryRoot } from "./check.ts";
import { installOwnProjects } from "./own-projects.ts";
import { addTallies, emptyTally, type Tally, tallyLine } from "./tally.ts";
import { runVitest } from "./vitest-tally.ts";

const layers = ["unit", "conformance", "integration", "package", "docs", "e2e"];

const script = (name: string, ...flags: string[]) => ["--import", "tsx", join("scripts", `${name}.ts`), ...flags];

/** Name of a check → what node runs for it. */
const checks: Readonly<Record<string, readonly string[]>> = {
  types: ["node_modules/typescript/bin/tsc", "--noEmit", "-p", "tsconfig.json"],
  "console types": ["node_modules/typescript/bin/tsc", "--noEmit", "-p", "console/tsconfig.json"],
  lint: ["node_modules/@biomejs/biome/bin/biome", "check", "--error-on-warnings", "."],
  "import fence": script("fence-canary"),
  "code shape": script("code-shape"),
  "tally canary": script("tally-canary"),
  "dead code": ["node_modules/knip/bin/knip.js", "--no-progress", "--treat-config-hints-as-errors"],
  "dead code canary": script("dead-code-canary"),
  "embedded SQL": script("embed-sql", "--check"),
  "docs tables": script("docs-tables", "--check"),
};

async function runCheck(name: string, args: readonly string[]): Promise<Tally> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, args, { cwd: repositoryRoot, stdio: ["ignore", "inherit", "inherit"] });
  const passed = await new Promise<boolean>((resolve) => {
    child.once("error", () => resolve(false));
    child.once("exit", (code) => resolve(code === 0));
  });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${passed ? "✓" : "✗"} check: ${name} (${seconds} s)`);
  return { ...emptyTally, passed: passed ? 1 : 0, failed: passed ? 0 : 1 };
}

async function runChecks(): Promise<Tally> {
  let tally = emptyTally;
  for (const [name, args] of Object.entries(checks)) tally = addTallies(tally, await runCheck(name, args));
  return tally;
}

async function main(asked: readonly string[]): Promise<void> {
  const unknown = asked.filter((layer) => layer !== "checks" && !layers.includes(layer));
  if (unknown.length > 0) throw new Error(`Unknown layer. Layers: checks ${layers.join(" ")}`);
  const all = asked.length === 0;
  const startedAt = performance.now();
  await installOwnProjects();
  let tally = all || asked.includes("checks") ? await runChecks() : emptyTally;
  const chosen = layers.filter((layer) => all || asked.includes(layer));
  if (chosen.length > 0)
    tally = addTallies(
      tally,
      await runVitest(
        chosen.map((layer) => `test/${layer}/`),
        repositoryRoot,
      ),
    );
  console.log(`\n${Math.round((performance.now() - startedAt) / 1000)} s on Node ${process.version}`);
  for (const reason of tally.skips) console.log(`skipped: ${reason}`);
  console.log(tallyLine(tally));
  // Left-over handles of a failed test must not keep the command from ending.
  process.exit(tally.failed > 0 || tally.passed === 0 ? 1 : 0);
}

await main(process.argv.slice(2));
