/**
 * Makes the table of docs/dialects.md that says what the vendors' own SDKs got: runs them against the example (the
 * test files test/e2e/dialect-*.test.ts) and writes down what each row came to. The tests themselves fail where a later run
 * gives another row than the page.
 */
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROWS_HEAD, rowLine, type SdkRow } from "../test/e2e/support/sdk-rows.ts";
import { repositoryRoot } from "./check.ts";

const PAGE = join(repositoryRoot, "docs/dialects.md");
const PLACE = /(<!-- rows: sdk -->\n)[\s\S]*?(<!-- \/rows -->)/;

function runTests(rowsFile: string): Promise<number> {
  const vitest = join(repositoryRoot, "node_modules/vitest/vitest.mjs");
  const child = spawn(process.execPath, [vitest, "run", "test/e2e/dialect-"], {
    cwd: repositoryRoot,
    env: { ...process.env, ONCEKEY_SDK_ROWS: rowsFile },
    stdio: ["ignore", "inherit", "inherit"],
  });
  return new Promise((resolve) => child.on("close", (code) => resolve(code ?? 1)));
}

async function rowsOf(file: string): Promise<SdkRow[]> {
  const lines = (await readFile(file, "utf8")).split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as SdkRow);
}

function tableOf(rows: readonly SdkRow[]): string {
  const lines = rows.map((row) => ({ of: `${row.profile} ${row.sdk}`, line: rowLine(row) }));
  // The order of the cases within an SDK is the tests' own; that of the files is whoever ends first.
  const groups = [...new Set(lines.map(({ of }) => of))].sort();
  return [ROWS_HEAD, ...groups.flatMap((of) => lines.filter((row) => row.of === of).map(({ line }) => line))].join(
    "\n",
  );
}

const folder = await mkdtemp(join(tmpdir(), "oncekey-rows-"));
try {
  const file = join(folder, "rows.jsonl");
  const status = await runTests(file);
  if (status === 0) {
    const table = tableOf(await rowsOf(file));
    const page = await readFile(PAGE, "utf8");
    await writeFile(
      PAGE,
      page.replace(PLACE, (_, open, close) => `${open}\n${table}\n\n${close}`),
    );
  }
  process.exitCode = status;
} finally {
  await rm(folder, { recursive: true, force: true });
}
