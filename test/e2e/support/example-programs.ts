import { chmod, copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { bundlePage } from "../../../examples/payments/checkout/script.ts";
import { buildConsolePage } from "../../../scripts/console-page.ts";
import { bundle } from "../../support/bundle.ts";

const CHECKOUT = resolve(import.meta.dirname, "..", "..", "..");
const PAYMENTS = join(CHECKOUT, "examples", "payments");
const COMMAND = join(CHECKOUT, "src", "cli", "main.ts");

/** The example's programs and the command, by the names of their bundles. */
const PROGRAMS = { start: "start.ts", psp: "psp.ts", worker: "worker.ts", service: "service.ts" };

/**
 * Bundles the example's programs (`start.mjs`, `psp.mjs`, `worker.mjs`, `oncekey.mjs` with `service.mjs`) into a directory
 * of their own. Inside of the checkout, so that they find the packages that stay outside of a bundle; readable for every
 * account, since some tests start them under another one. `more`: further programs, by the name of their bundle.
 */
export async function bundleExample(more: Readonly<Record<string, string>> = {}): Promise<string> {
  const cache = join(CHECKOUT, "node_modules", ".cache");
  await mkdir(cache, { recursive: true });
  const outDir = await mkdtemp(join(cache, "oncekey-e2e-"));
  await chmod(outDir, 0o755);
  const sources = Object.entries(PROGRAMS).map(([name, file]) => [name, join(PAYMENTS, file)] as const);
  await bundle({ programs: { ...Object.fromEntries(sources), oncekey: COMMAND, ...more }, outDir });
  // What the programs read from beside themselves.
  const files = ["schema.sql", "checkout/checkout.html", "checkout/checkout.css"];
  await Promise.all(files.map((file) => copyFile(join(PAYMENTS, file), join(outDir, basename(file)))));
  await writeFile(join(outDir, "checkout.js"), await bundlePage());
  await buildConsolePage(join(outDir, "static"));
  return outDir;
}

/** Removes such a directory. */
export function removePrograms(outDir: string): Promise<void> {
  return rm(outDir, { recursive: true, force: true });
}
