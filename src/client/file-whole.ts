import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, rename, rm, stat, unlink } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;
const PART = ".part";

/**
 * Whoever writes for longer than this has died, most likely. Nothing rests on it: who finds his part gone begins again.
 */
const LEFT_AFTER_MS = 60_000;

/** Makes the directory and those above it where they are missing; their names are on the disk when this resolves. */
export async function makeDirectory(directory: string): Promise<void> {
  const first = await mkdir(directory, { recursive: true, mode: DIRECTORY_MODE });
  if (first === undefined) return;
  const top = dirname(resolve(first));
  for (let at = resolve(directory); at !== top; at = dirname(at)) await syncDirectory(dirname(at));
}

/** Writes the text under that name, in place of what is there: a reader, also after a crash, sees the one or the other. */
export async function writeWhole(directory: string, name: string, text: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const part = join(directory, newPart(name));
    try {
      await writeSynced(part, text);
      await rename(part, join(directory, name));
      return await syncDirectory(directory);
    } catch (error) {
      await rm(part, { force: true });
      if (!isMissing(error) || attempt === 2) throw error;
      // Another process took it for left over, or the whole directory was removed.
      await makeDirectory(directory);
    }
  }
}

/** Removes a file, so that it stays removed after a crash. Nothing happens where there is none. */
export async function removeForGood(directory: string, name: string): Promise<void> {
  try {
    await unlink(join(directory, name));
  } catch (error) {
    if (isMissing(error)) return;
    throw error;
  }
  await syncDirectory(directory);
}

/** A name of its own for something that gets its real name when it is complete. */
export const newPart = (name: string): string => `${name}.${randomBytes(6).toString("hex")}${PART}`;

/** Removes the files that processes left which died while they wrote. */
export async function removeLeftParts(directory: string): Promise<void> {
  for (const { path, isDirectory } of await leftParts(directory)) if (!isDirectory) await rm(path, { force: true });
}

/** What was left unfinished for a minute and more. */
export async function leftParts(directory: string): Promise<{ path: string; isDirectory: boolean }[]> {
  const left: { path: string; isDirectory: boolean }[] = [];
  for (const name of await readdir(directory)) {
    if (!name.endsWith(PART)) continue;
    const path = join(directory, name);
    const found = await stat(path).catch(() => null);
    if (found !== null && Date.now() - found.mtimeMs > LEFT_AFTER_MS)
      left.push({ path, isDirectory: found.isDirectory() });
  }
  return left;
}

/** Whether an error says that there is no such file or directory. */
export const isMissing = (error: unknown): boolean => codeOf(error) === "ENOENT";

/** The code of a system call's error. */
export function codeOf(error: unknown): unknown {
  return (error as { readonly code?: unknown } | null)?.code;
}

async function writeSynced(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", FILE_MODE);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Without it a crash of the machine may lose the name of a file that is on the disk. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
