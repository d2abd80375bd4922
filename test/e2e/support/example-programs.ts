import { chmod, copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { bundle } from "../../support/bundle.ts";

const CHECKOUT = resolve(import.meta.dirname, "..", "..", "..");
const PAYMENTS = join(CHECKOUT, "examples", "payments");
const COMMAND = join(CHECKOUT, "src", "cli", "main.ts");

/** The example's programs and the command, by the names of their bundles. */
const PROGRAMS = { start: "start.ts", psp: "psp.ts", worker: "worker.ts", service: "service.ts" };

/**
 * Bundles the example's programs (`start.mjs`, `psp.mjs`, `worker.mjs`, `oncekey.mjs` with `service.mjs`) into a directory
 * of their own. Inside of the checkout, so that they find the packages that stay outside of a bundle; readable for every
 * account, since some tests start them under another one.
 */
export async function bundleExample(): Promise<string> {
  const cache = join(CHECKOUT, "node_modules", ".cache");
  await mkdir(cache, { recursive: true });
  const outDir = await mkdtemp(join(cache, "oncekey-e2e-"));
  await chmod(outDir, 0o755);
  const sources = Object.entries(PROGRAMS).map(([name, file]) => [name, join(PAYMENTS, file)] as const);
  await bundle({ programs: { ...Object.fromEntries(sources), oncekey: COMMAND }, outDir });
  await copyFile(join(PAYMENTS, "schema.sql"), join(outDir, "schema.sql"));
  return outDir;
}

/** Removes such a directory. */
export function removePrograms(outDir: string): Promise<void> {
  return rm(outDir, { recursive: true, force: true });
}
