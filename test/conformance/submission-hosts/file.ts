import { execFile } from "node:child_process";
import { accessSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { fileStorage } from "oncekey/client/file";
import type { SubmissionStorageHarness } from "oncekey/testing";

const PRLIMIT = "/usr/bin/prlimit";
const ROOM_BYTES = 65_536;

/** Why the full medium cannot be shown here, or `null`. */
export function noFullDisk(): string | null {
  try {
    accessSync(PRLIMIT);
    return null;
  } catch {
    return "the kernel's limit on the size of files is set by prlimit (util-linux), which is not here";
  }
}

/** The kernel refuses this process to make any file larger than that, as a full disk would. */
async function limitFiles(bytes: number | "unlimited"): Promise<void> {
  await promisify(execFile)(PRLIMIT, ["--pid", String(process.pid), `--fsize=${bytes}:unlimited`]);
}

/** A directory of its own, removed in the end. */
export async function fileHarness(): Promise<SubmissionStorageHarness> {
  const parent = await mkdtemp(join(tmpdir(), "oncekey-client-"));
  const directory = join(parent, "submissions");
  let limited = false;
  return {
    open: async () => fileStorage(directory, { onUnreadable: () => {} }),
    async fill() {
      limited = true;
      await limitFiles(ROOM_BYTES);
    },
    async damage(name) {
      for (const file of await readdir(directory)) {
        const path = join(directory, file);
        const text = await readFile(path, "utf8");
        if (text.includes(`"name":${JSON.stringify(name)}`)) await writeFile(path, text.slice(0, text.length / 2));
      }
    },
    async close() {
      if (limited) await limitFiles("unlimited");
      await rm(parent, { recursive: true, force: true });
    },
  };
}
