import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "../../support/bundle.ts";
import { atEnd } from "../../support/postgres.ts";

let bundled: Promise<string> | undefined;

/** worker.ts as a program of plain JavaScript, made once and removed at the end of the test file. */
export function bundledWorker(): Promise<string> {
  bundled ??= bundleWorker();
  return bundled;
}

async function bundleWorker(): Promise<string> {
  const outDir = await mkdtemp(join(tmpdir(), "oncekey-worker-"));
  atEnd(() => rm(outDir, { recursive: true, force: true }));
  await bundle({ programs: { worker: fileURLToPath(new URL("./worker.ts", import.meta.url)) }, outDir });
  return join(outDir, "worker.mjs");
}
