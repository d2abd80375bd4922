/** Builds the console's page (console/) into static files. */
import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { repositoryRoot } from "./check.ts";

const sources = join(repositoryRoot, "console");
/** What is in the files besides our own: their licences go with them. */
const PARTS = ["preact", "uplot"];
const ENTRY = "index.html";

/**
 * Builds the page into that folder. Whoever serves the folder meanwhile, or builds into it as well, always finds a whole
 * page: files with a digest in their names come first, and the one that names them last, in one step.
 */
export async function buildConsolePage(folder: string): Promise<void> {
  // Loaded when it is needed: to find out that nothing is to be built takes no bundler.
  const { build } = await import("vite");
  const cache = join(repositoryRoot, "node_modules", ".cache");
  await mkdir(cache, { recursive: true });
  const fresh = await mkdtemp(join(cache, "oncekey-console-"));
  try {
    await build({ configFile: join(sources, "vite.config.ts"), logLevel: "warn", build: { outDir: fresh } });
    await writeFile(join(fresh, "licenses.txt"), await licences());
    const names = await filesOf(fresh);
    for (const name of [...names.filter((one) => one !== ENTRY), ENTRY])
      await publish(join(fresh, name), join(folder, name));
    await removeOthers(
      join(folder, "assets"),
      names.map((name) => basename(name)),
    );
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

/** Whether that folder holds a page, and none of its sources is younger. */
export async function isConsolePageFresh(folder: string): Promise<boolean> {
  const built = await stat(join(folder, ENTRY)).catch(() => null);
  if (built === null) return false;
  const files = (await filesOf(sources)).filter((name) => !name.startsWith("dist/")).map((name) => join(sources, name));
  const times = await Promise.all([...files, join(repositoryRoot, "package-lock.json")].map((file) => stat(file)));
  return times.every(({ mtimeMs }) => mtimeMs <= built.mtimeMs);
}

async function licences(): Promise<string> {
  const texts = PARTS.map(async (name) => {
    const text = await readFile(join(repositoryRoot, "node_modules", name, "LICENSE"), "utf8");
    return `${name}\n\n${text.trim()}\n`;
  });
  return (await Promise.all(texts)).join("\n\n");
}

async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1)).sort();
}

async function publish(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  const beside = `${to}.${process.pid}`;
  await copyFile(from, beside);
  await rename(beside, to);
}

/** What another build at the same time has put there is of the same sources, and has the same names. */
async function removeOthers(folder: string, kept: readonly string[]): Promise<void> {
  const old = (await readdir(folder)).filter((name) => !kept.includes(name) && /\.(js|css)$/.test(name));
  await Promise.all(old.map((name) => rm(join(folder, name), { force: true })));
}
