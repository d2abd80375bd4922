/** Builds the package: a clean dist/ of ESM and declarations, the command made executable, and the result looked over. */
import { execFile } from "node:child_process";
import { chmod, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { reportCheck, repositoryRoot } from "./check.ts";
import { buildConsolePage } from "./console-page.ts";

const dist = join(repositoryRoot, "dist");
const command = join(dist, "cli/main.js");

async function compile(): Promise<string | null> {
  const tsc = join(repositoryRoot, "node_modules/typescript/bin/tsc");
  const run = promisify(execFile)(process.execPath, [tsc, "-p", "tsconfig.build.json"], { cwd: repositoryRoot });
  return run.then(
    () => null,
    (error: { stdout: string }) => `tsc failed:\n${error.stdout}`,
  );
}

async function builtFiles(): Promise<string[]> {
  const entries = await readdir(dist, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** A relative import of a `.ts` file, in code or in a declaration. */
const sourceImport = /((?:from|import)\s*\(?\s*["']\.{1,2}\/[^"']*)(?<!\.d)\.ts(?=["'])/g;

/** The compiler rewrites `.ts` to `.js` in code only. Same length, so that declaration maps stay right. */
async function rewriteDeclarations(files: readonly string[]): Promise<void> {
  const declarations = files.filter((file) => file.endsWith(".d.ts"));
  await Promise.all(
    declarations.map(async (file) => writeFile(file, (await readFile(file, "utf8")).replace(sourceImport, "$1.js"))),
  );
}

/** An import that still names a `.ts` file would load from the sources of a checkout and fail in an installed package. */
async function leftoverImports(files: readonly string[]): Promise<string[]> {
  const code = files.filter((file) => /\.(js|d\.ts)$/.test(file));
  const texts = await Promise.all(code.map(async (file) => ({ file, text: await readFile(file, "utf8") })));
  const offending = texts.filter(({ text }) => text.search(sourceImport) >= 0);
  return offending.map(({ file }) => `${file.slice(repositoryRoot.length)} imports a .ts file`);
}

async function makeCommand(): Promise<string[]> {
  const text = await readFile(command, "utf8").catch(() => null);
  if (text === null) return ["dist/cli/main.js, the oncekey command, is missing"];
  await chmod(command, 0o755);
  return text.startsWith("#!/usr/bin/env node\n") ? [] : ["src/cli/main.ts must begin with #!/usr/bin/env node"];
}

async function build(): Promise<{ files: readonly string[]; problems: readonly string[] }> {
  await rm(dist, { recursive: true, force: true });
  const failure = await compile();
  if (failure !== null) return { files: [], problems: [failure] };
  const files = await builtFiles();
  await rewriteDeclarations(files);
  await buildConsolePage(join(dist, "console", "static"));
  return { files, problems: [...(await leftoverImports(files)), ...(await makeCommand())] };
}

const { files, problems } = await build();
reportCheck("build", `${files.length} files in dist`, problems);
