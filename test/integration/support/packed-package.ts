import { execFile } from "node:child_process";
import { access, cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../../..", import.meta.url));

/**
 * Builds the package as it is published into a folder, such as a project's `node_modules/oncekey`. A build of its own:
 * `dist/` belongs to the tests of the package, which run at the same time and begin by deleting it.
 */
export async function packedPackage(folder: string): Promise<void> {
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const flags = ["--outDir", join(folder, "dist"), "--declarationMap", "false", "--sourceMap", "false"];
  // A type error is the finding of another check; what matters here is what was written.
  await promisify(execFile)(process.execPath, [tsc, "-p", "tsconfig.build.json", ...flags], { cwd: root }).catch(
    () => {},
  );
  await access(join(folder, "dist/index.js"));
  await cp(join(root, "package.json"), join(folder, "package.json"));
  const files = await readdir(join(folder, "dist"), { recursive: true });
  await Promise.all(files.filter((file) => file.endsWith(".d.ts")).map((file) => rewrite(join(folder, "dist", file))));
}

// As scripts/build.ts does: the compiler rewrites `.ts` to `.js` in code only.
async function rewrite(file: string): Promise<void> {
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replace(/((?:from|import)\s*\(?\s*["']\.{1,2}\/[^"']*)(?<!\.d)\.ts(?=["'])/g, "$1.js"));
}
