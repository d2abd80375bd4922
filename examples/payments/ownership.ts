import { linkSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isAlive, ownMark, type ProcessMark } from "./processes.ts";

/** Who owns a directory: this process from now on, or a living other one. */
export type Ownership = { readonly kind: "owner" } | { readonly kind: "held"; readonly by: ProcessMark };

/**
 * Makes this process the owner of `dir` unless a living process owns it. Ownership ends with the process, however it
 * ends; there is nothing to release.
 *
 * Owners are numbered files, and the only step is to create the next number with its content in place (`link` fails
 * where the name exists). A lock file that had to be removed first could be removed twice, the second time from under
 * its new owner.
 */
export function claimOwnership(dir: string): Ownership {
  mkdirSync(dir, { recursive: true });
  for (;;) {
    const newest = generations(dir).at(-1) ?? 0;
    const holder = newest === 0 ? null : readJson<ProcessMark>(ownerFile(dir, newest));
    if (holder !== null && isAlive(holder)) {
      return holder.pid === process.pid ? { kind: "owner" } : { kind: "held", by: holder };
    }
    if (takeGeneration(dir, newest + 1)) return { kind: "owner" };
  }
}

/** Writes a JSON file so that a reader sees all of it or nothing, whenever this process dies. Mode 0600. */
export function publishJson(path: string, value: unknown): void {
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, JSON.stringify(value), { mode: 0o600 });
  renameSync(draft, path);
}

/** Like {@link publishJson}, for a file that must not exist yet. `false` where it does: somebody was faster. */
export function publishFirst(path: string, value: unknown): boolean {
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, JSON.stringify(value), { mode: 0o600 });
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Reads what {@link publishJson} wrote; `null` where there is no such file. */
export function readJson<T>(path: string): T | null {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

function takeGeneration(dir: string, generation: number): boolean {
  if (!publishFirst(ownerFile(dir, generation), ownMark())) return false;
  const all = generations(dir);
  // A process that slept since it looked may have taken a number that was already outlived and tidied away.
  if (all.at(-1) !== generation) {
    rmSync(ownerFile(dir, generation), { force: true });
    return false;
  }
  for (const older of all) if (older < generation) rmSync(ownerFile(dir, older), { force: true });
  return true;
}

const ownerFile = (dir: string, generation: number): string => join(dir, `owner.${generation}`);

function generations(dir: string): number[] {
  const numbers = readdirSync(dir).map((name) => Number(/^owner\.(\d+)$/.exec(name)?.[1] ?? 0));
  return numbers.filter((number) => number > 0).sort((a, b) => a - b);
}
