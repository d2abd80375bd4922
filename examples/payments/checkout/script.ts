import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { extname, join } from "node:path";
import type * as Esbuild from "esbuild";

const HERE = import.meta.dirname;
let bundled: Promise<string> | undefined;

/** The page's script: bundled from its source at the first request, or lying beside this program's own bundle. */
export function pageScript(): Promise<string> {
  bundled ??= extname(import.meta.url) === ".ts" ? bundlePage() : readFile(join(HERE, "checkout.js"), "utf8");
  // A failure is told to whoever asked, and tried again for the next one.
  bundled.catch(() => {
    bundled = undefined;
  });
  return bundled;
}

/** Bundles page.ts and the client for browsers. */
export async function bundlePage(): Promise<string> {
  // Loaded when it is needed: the API itself runs without a bundler.
  const { build } = createRequire(import.meta.url)("esbuild") as typeof Esbuild;
  const { outputFiles } = await build({
    entryPoints: [join(HERE, "page.ts")],
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    target: "es2022",
    minify: true,
    conditions: ["oncekey-source"],
  });
  return outputFiles[0]?.text ?? "";
}
