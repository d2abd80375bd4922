import { execFile } from "node:child_process";
import { cp, lstat, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { repositoryRoot } from "../../scripts/check.ts";
import { ownProjects } from "../../scripts/own-projects.ts";

/** A copy of the repository in a temporary folder: what is broken there is broken nowhere else. */
export interface Tree {
  readonly root: string;
  /** Removes the copy. */
  remove(): Promise<void>;
}

/** The sources that a copy leaves out: nothing that is run in one needs them. */
const LEFT_OUT = [/^docs\/images\//, /^lab\/proof\//];

/**
 * Copies what git keeps, and what it would keep (a test that is being written counts), with the installed packages linked
 * in. The copy resolves `oncekey` to itself, by its own package.json.
 */
export async function copyTree(): Promise<Tree> {
  const root = await mkdtemp(join(tmpdir(), "oncekey-broken-"));
  for (const file of await sourceFiles()) {
    await mkdir(dirname(join(root, file)), { recursive: true });
    await cp(join(repositoryRoot, file), join(root, file));
  }
  for (const folder of ["", ...(await ownProjects())]) {
    const packages = join(folder, "node_modules");
    if (await exists(join(repositoryRoot, packages))) {
      await symlink(join(repositoryRoot, packages), join(root, packages));
    }
  }
  return { root, remove: () => rm(root, { recursive: true, force: true }) };
}

async function sourceFiles(): Promise<string[]> {
  const flags = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const { stdout } = await promisify(execFile)("git", flags, { cwd: repositoryRoot, maxBuffer: 64 * 1024 * 1024 });
  const files = stdout.split("\0").filter((file) => file !== "" && !LEFT_OUT.some((pattern) => pattern.test(file)));
  // A file that was removed and not yet committed is still listed.
  const there = await Promise.all(files.map((file) => exists(join(repositoryRoot, file))));
  return files.filter((_, at) => there[at]);
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}
