import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { repositoryRoot } from "./check.ts";

/**
 * Gives `use` a temporary folder that holds the planted files (path → text) and our node_modules, and removes it
 * afterwards. For canaries: what a checker must find is planted there, never in the repository.
 */
export async function inPlantedProject<T>(
  files: Readonly<Record<string, string>>,
  use: (folder: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "oncekey-planted-"));
  try {
    await symlink(join(repositoryRoot, "node_modules"), join(folder, "node_modules"));
    for (const [file, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, file)), { recursive: true });
      await writeFile(join(folder, file), text);
    }
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
