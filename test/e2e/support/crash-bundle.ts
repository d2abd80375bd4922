import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { bundle } from "../../support/bundle.ts";
import { atEnd } from "../../support/postgres.ts";

const PAYMENTS = resolve(import.meta.dirname, "..", "..", "..", "examples", "payments");

const COMMAND = resolve(PAYMENTS, "..", "..", "src", "cli", "main.ts");

let bundled: Promise<string> | undefined;

/** A directory with the example's programs (`start.mjs`, `psp.mjs`, `oncekey.mjs` with `service.mjs`), made once and removed at the end of the test file. */
export function bundledExample(): Promise<string> {
  bundled ??= bundleExample();
  return bundled;
}

async function bundleExample(): Promise<string> {
  const outDir = await mkdtemp(join(tmpdir(), "oncekey-e2e-programs-"));
  atEnd(() => rm(outDir, { recursive: true, force: true }));
  const example = { start: "start.ts", psp: "psp.ts", service: "service.ts" };
  const programs = Object.entries(example).map(([name, file]) => [name, join(PAYMENTS, file)] as const);
  await bundle({ programs: { ...Object.fromEntries(programs), oncekey: COMMAND }, outDir });
  await copyFile(join(PAYMENTS, "schema.sql"), join(outDir, "schema.sql"));
  return outDir;
}
