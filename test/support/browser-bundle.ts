import { build } from "esbuild";

/** Bundles a program and all that it imports for a page, as one script. Packages resolve to their sources. */
export async function bundleForPage(entry: string, alias: Readonly<Record<string, string>> = {}): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    alias: { ...alias },
    bundle: true,
    write: false,
    format: "iife",
    platform: "browser",
    // Of modules that only other exports of a package need: they are shaken out.
    external: ["node:*"],
    target: "es2022",
    conditions: ["oncekey-source"],
    logLevel: "error",
  });
  return outputFiles.map(({ text }) => text).join("");
}
