import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** A program of this folder as one file of plain JavaScript. */
export interface Bundled {
  readonly file: string;
  /** A folder of its own, which goes when the work is over. */
  readonly folder: string;
  /** Runs it under Node with these flags and arguments, its output passed on. Gives its exit code. */
  run(flags: readonly string[], args: readonly string[]): Promise<number>;
}

/**
 * Bundles a program with the sources it measures. What is measured must be the JavaScript that the package ships: the
 * loader that runs TypeScript directly wraps each function it meets to keep its name, and a closure made on every request
 * then costs several times what it does.
 */
export async function withBundle<T>(program: string, use: (bundled: Bundled) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "oncekey-bench-"));
  const file = join(folder, "program.mjs");
  try {
    await build({
      entryPoints: [fileURLToPath(new URL(program, import.meta.url))],
      outfile: file,
      bundle: true,
      platform: "node",
      format: "esm",
      target: "node20",
      conditions: ["oncekey-source"],
      logLevel: "error",
    });
    return await use({ file, folder, run: (flags, args) => runNode([...flags, file, ...args]) });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function runNode(args: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, args, { stdio: "inherit" });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code ?? 1));
  });
}
