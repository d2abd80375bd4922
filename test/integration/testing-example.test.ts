/** The team's tests of `docs/testing.md`: in vitest here, in node:test and Jest as their users start them. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import "../../examples/testing/charges.vitest.ts";
import "../../examples/testing/invoices.vitest.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const jestProject = join(root, "test/peers/jest30");

/** Runs node to its end; gives its exit code and all that it wrote. */
async function run(args: readonly string[], cwd: string): Promise<{ code: number | null; output: string }> {
  // A runner inside of a runner must not take the outer one's settings for its own.
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
  const child = spawn(process.execPath, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return { code, output: Buffer.concat(chunks).toString() };
}

it("runs in node:test", async () => {
  const args = ["--conditions=oncekey-source", "--import", "tsx", "--test", "--test-reporter=tap"];
  const { code, output } = await run([...args, "examples/testing/invoices.node.ts"], root);
  expect(output).toMatch(/^# pass 2$/m);
  expect(output).toMatch(/^# fail 0$/m);
  expect(code).toBe(0);
}, 120_000);

it("runs in Jest", async () => {
  const args = ["--experimental-vm-modules", "--no-warnings", "node_modules/jest/bin/jest.js", "--ci"];
  const { code, output } = await run(args, jestProject);
  expect(output).toMatch(/^Tests: +2 passed, 2 total$/m);
  expect(code).toBe(0);
}, 240_000);

it("is the same test in each, but for where `test` comes from", () => {
  const bodyOf = (runner: string) => {
    const text = readFileSync(join(root, `examples/testing/invoices.${runner}.ts`), "utf8");
    return text.split("\n").filter((line) => !/^import { test }|^declare const test|^\/\/|^$/.test(line));
  };
  expect(bodyOf("node")).toEqual(bodyOf("vitest"));
  expect(bodyOf("jest")).toEqual(bodyOf("vitest"));
  expect(bodyOf("vitest").length).toBeLessThanOrEqual(20);
});

it("is what the page shows, to the letter", () => {
  const page = readFileSync(join(root, "docs/testing.md"), "utf8");
  const shown = [...page.matchAll(/^```typescript\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block.trimEnd());
  const textOf = (file: string) => readFileSync(join(root, "examples/testing", file), "utf8");
  const [invoices, charges] = [textOf("invoices.vitest.ts"), textOf("charges.vitest.ts")];
  expect(shown[0]).toBe(invoices.trimEnd());
  expect(shown.slice(1).filter((block) => !charges.includes(block))).toEqual([]);
  expect(shown).toHaveLength(5);
});
