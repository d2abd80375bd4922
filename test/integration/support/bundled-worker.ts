import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { atEnd } from "../../support/postgres.ts";

let bundled: Promise<string> | undefined;

/**
 * worker.ts and all that it imports as one file of plain JavaScript: sixteen processes that each translate the sources
 * for themselves take half a minute to start, these take two seconds. Removed at the end of the test file.
 */
export function bundledWorker(): Promise<string> {
  bundled ??= bundle();
  return bundled;
}

async function bundle(): Promise<string> {
  const outDir = await mkdtemp(join(tmpdir(), "oncekey-worker-"));
  atEnd(() => rm(outDir, { recursive: true, force: true }));
  await build({
    configFile: false,
    logLevel: "error",
    resolve: { conditions: ["oncekey-source"] },
    ssr: { noExternal: true, resolve: { conditions: ["oncekey-source"] } },
    build: {
      ssr: fileURLToPath(new URL("./worker.ts", import.meta.url)),
      outDir,
      emptyOutDir: false,
      minify: false,
      rolldownOptions: { external: ["pg-native"], output: { entryFileNames: "worker.mjs" } },
    },
  });
  return join(outDir, "worker.mjs");
}
