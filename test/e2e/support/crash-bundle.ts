import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { bundle } from "../../support/bundle.ts";
import { atEnd } from "../../support/postgres.ts";

const PAYMENTS = resolve(import.meta.dirname, "..", "..", "..", "examples", "payments");

let bundled: Promise<string> | undefined;

/** A directory with the example's programs (`start.mjs`, `psp.mjs`), made once and removed at the end of the test file. */
export function bundledExample(): Promise<string> {
  bundled ??= bundleExample();
  return bundled;
}

async function bundleExample(): Promise<string> {
  const outDir = await mkdtemp(join(tmpdir(), "oncekey-e2e-programs-"));
  atEnd(() => rm(outDir, { recursive: true, force: true }));
  await bundle({ programs: { start: join(PAYMENTS, "start.ts"), psp: join(PAYMENTS, "psp.ts") }, outDir });
  await copyFile(join(PAYMENTS, "schema.sql"), join(outDir, "schema.sql"));
  return outDir;
}
