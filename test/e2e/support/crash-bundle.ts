import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { build } from "vite";
import { atEnd } from "../../support/postgres.ts";

const PAYMENTS = resolve(import.meta.dirname, "..", "..", "..", "examples", "payments");

let bundled: Promise<string> | undefined;

/**
 * A directory with the example's programs (`start.mjs`, `psp.mjs`) translated once, for campaigns that start dozens of
 * processes: each of them translating the sources for itself costs two seconds of a core. Removed at the end of the
 * test file.
 */
export function bundledExample(): Promise<string> {
  bundled ??= bundle();
  return bundled;
}

async function bundle(): Promise<string> {
  const outDir = await mkdtemp(join(tmpdir(), "oncekey-e2e-programs-"));
  atEnd(() => rm(outDir, { recursive: true, force: true }));
  await build({
    configFile: false,
    logLevel: "error",
    resolve: { conditions: ["oncekey-source"] },
    ssr: { noExternal: true, resolve: { conditions: ["oncekey-source"] } },
    build: {
      ssr: true,
      outDir,
      emptyOutDir: false,
      minify: false,
      rolldownOptions: {
        input: { start: join(PAYMENTS, "start.ts"), psp: join(PAYMENTS, "psp.ts") },
        external: ["pg-native"],
        output: { entryFileNames: "[name].mjs", chunkFileNames: "[name]-[hash].mjs" },
      },
    },
  });
  await copyFile(join(PAYMENTS, "schema.sql"), join(outDir, "schema.sql"));
  return outDir;
}
