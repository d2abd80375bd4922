import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "../../support/bundle.ts";
import { atEnd } from "../../support/postgres.ts";

const bundled = new Map<string, Promise<string>>();

/** worker.ts (or another one beside it) as a program of plain JavaScript, made once and removed at the end of the test file. */
export function bundledWorker(name = "worker"): Promise<string> {
  const program = bundled.get(name) ?? bundleWorker(name);
  bundled.set(name, program);
  return program;
}

async function bundleWorker(name: string): Promise<string> {
  const outDir = await mkdtemp(join(tmpdir(), "oncekey-worker-"));
  atEnd(() => rm(outDir, { recursive: true, force: true }));
  await bundle({ programs: { [name]: fileURLToPath(new URL(`./${name}.ts`, import.meta.url)) }, outDir });
  return join(outDir, `${name}.mjs`);
}
