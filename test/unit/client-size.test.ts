import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");

/** What a page pays for what it imports of the client: bundled, minified, gzipped; and what that imports from elsewhere. */
async function weigh(names: string, path: string): Promise<{ bytes: number; foreign: string[] }> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: `export { ${names} } from "./${path}";`, resolveDir: root, sourcefile: "src/client/page.ts" },
    absWorkingDir: root,
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    external: ["node:*"],
    write: false,
    metafile: true,
  });
  const [bundle] = outputFiles;
  if (bundle === undefined) throw new Error("Nothing was built.");
  const imports = Object.values(metafile.outputs).flatMap((output) => output.imports.map((one) => one.path));
  const strangers = Object.keys(metafile.inputs).filter((input) => !input.startsWith("src/client/"));
  return { bytes: gzipSync(bundle.contents).length, foreign: [...imports, ...strangers] };
}

describe("oncekey/client in a page", () => {
  it("weighs less than 6 KB, and brings nothing of Node's and no dependency", async () => {
    const { bytes, foreign } = await weigh("createClient, SubmissionError", "src/client/index.ts");
    expect(foreign).toEqual([]);
    expect(bytes).toBeLessThan(6_144);
    // Less would mean that nothing was measured.
    expect(bytes).toBeGreaterThan(3_000);
  });

  it("would be found to bring something of Node's (canary: the storage in files)", async () => {
    const { foreign } = await weigh("fileStorage", "src/client/file.ts");
    expect(foreign.filter((name) => name.startsWith("node:")).length).toBeGreaterThan(0);
  });
});
