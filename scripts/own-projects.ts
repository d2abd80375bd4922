/**
 * Installs the small projects of their own that tests and examples bring: libraries that are heavy, or that stand beside
 * another version of themselves (Next.js, Nitro, two of Prisma, an older NestJS). Apart from the root, so that
 * `npm ci && npm start` does not wait for them. Does nothing where a project is installed as its lockfile says.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { repositoryRoot } from "./check.ts";

/** Folders whose folders may be projects. */
const PARENTS = ["test/peers", "examples/frameworks"];
/** Inside of `node_modules`: the digest of the lockfile that was installed. */
const STAMP = "node_modules/.installed-lock";

/** Paths of the projects, relative to the root, sorted. */
export async function ownProjects(): Promise<string[]> {
  const found = await Promise.all(PARENTS.map(projectsIn));
  return found.flat().sort();
}

async function projectsIn(parent: string): Promise<string[]> {
  const entries = await readdir(join(repositoryRoot, parent), { withFileTypes: true }).catch(() => []);
  const paths = entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(parent, name));
  const locked = await Promise.all(paths.map(async (path) => (await lockOf(path)) !== null));
  return paths.filter((_, at) => locked[at]);
}

async function lockOf(path: string): Promise<string | null> {
  const text = await readFile(join(repositoryRoot, path, "package-lock.json")).catch(() => null);
  return text === null ? null : createHash("sha256").update(text).digest("hex");
}

/** Installs what is missing. Throws where npm fails: tests that need it would only say that a module is not there. */
export async function installOwnProjects(): Promise<void> {
  for (const path of await ownProjects()) await installProject(path);
}

/** Installs one project, by its path from the root, where it is not installed as its lockfile says. */
export async function installProject(path: string): Promise<void> {
  if (await isInstalled(path)) return;
  console.log(`installing ${path}`);
  await npmCi(path);
  await writeFile(join(repositoryRoot, path, STAMP), (await lockOf(path)) ?? "");
}

/** Whether a project is installed as its lockfile says. */
export async function isInstalled(path: string): Promise<boolean> {
  const stamp = await readFile(join(repositoryRoot, path, STAMP), "utf8").catch(() => "");
  return stamp !== "" && stamp === (await lockOf(path));
}

async function npmCi(path: string): Promise<void> {
  // Nothing of Prisma's own engine is needed, and its download would be.
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: "/bin/true", NEXT_TELEMETRY_DISABLED: "1" };
  const child = spawn("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: join(repositoryRoot, path),
    env,
    stdio: ["ignore", "inherit", "inherit"],
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", resolve);
  });
  if (code !== 0) throw new Error(`npm ci failed in ${path} (code ${code}). Its tests cannot run.`);
}
