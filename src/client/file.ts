import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { SubmissionError } from "./error.ts";
import { holdLock, removeDeadLocks } from "./file-lock.ts";
import { isMissing, makeDirectory, removeForGood, removeLeftParts, writeWhole } from "./file-whole.ts";
import type { SubmissionStorage } from "./storage.ts";
import { parsed, parseStored } from "./stored-form.ts";
import type { StoredSubmission } from "./submission.ts";

/** Options of {@link fileStorage}. */
export interface FileStorageOptions {
  /**
   * Told of each file that `list()` leaves out because it cannot be read. The submission in it is not resumed: look into it.
   * Default: a process warning.
   */
  readonly onUnreadable?: (error: Error) => void;
}

/**
 * Keeps submissions in a directory, one file each, shared by the processes of one host (POSIX systems; the locks are sockets,
 * so no file system that several hosts write to). The directory is made where it is missing (0700); a file may be read by
 * its owner only (0600), is named by a digest of the submission's name, and is on the disk, whole, before a write counts.
 * A lock ends with its process, however that ends, without a time-out; a process that is stopped still holds it. Raises
 * `oncekey_config_invalid` on other systems.
 */
export function fileStorage(path: string, { onUnreadable = warn }: FileStorageOptions = {}): SubmissionStorage {
  if (process.platform === "win32")
    throw new SubmissionError("oncekey_config_invalid", "fileStorage needs a POSIX system. Choose another storage.");
  const directory = resolve(path);
  let tidied: Promise<void> | undefined;
  const ready = async () => {
    tidied ??= tidy(directory);
    await tidied.catch((error: unknown) => {
      tidied = undefined;
      throw error;
    });
  };
  return {
    name: "file",
    get: (name) => read(join(directory, fileOf(name)), name),
    async put(submission) {
      await ready();
      await writeWhole(directory, fileOf(submission.name), JSON.stringify(submission));
    },
    list: () => readAll(directory, onUnreadable),
    remove: (name) => removeForGood(directory, fileOf(name)),
    async exclusively(name, run, signal) {
      await ready();
      const release = await holdLock(directory, digestOf(name).slice(0, LOCK_DIGITS), signal);
      try {
        return await run();
      } finally {
        await release();
      }
    },
  };
}

const ENDING = ".json";
/** 128 bits: as good as the whole digest, and a path to a socket must be short. */
const LOCK_DIGITS = 32;

/** Of the JSON text, which keeps apart what UTF-8 would not: names with lone surrogates. */
const digestOf = (name: string): string => createHash("sha256").update(JSON.stringify(name)).digest("hex");

const fileOf = (name: string): string => digestOf(name) + ENDING;

async function tidy(directory: string): Promise<void> {
  await makeDirectory(directory);
  await removeLeftParts(directory);
  await removeDeadLocks(directory);
}

async function read(path: string, name: string): Promise<StoredSubmission | null> {
  try {
    return parseStored(await readFile(path, "utf8"), name, path);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

async function readAll(directory: string, onUnreadable: (error: Error) => void): Promise<StoredSubmission[]> {
  const files = await readdir(directory).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  const all: StoredSubmission[] = [];
  for (const file of files.filter((one) => one.endsWith(ENDING))) {
    const stored = await readNamed(join(directory, file), file).catch((error: Error) => {
      onUnreadable(error);
      return null;
    });
    if (stored !== null) all.push(stored);
  }
  return all;
}

/** A file is found by its name only: under any other, `get` would not see it, so it counts as unreadable. */
async function readNamed(path: string, file: string): Promise<StoredSubmission | null> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    // Removed since the directory was read.
    if (isMissing(error)) return null;
    throw error;
  });
  if (text === null) return null;
  const name = nameIn(text);
  return parseStored(fileOf(name) === file ? text : "", name, path);
}

const nameIn = (text: string): string => String((parsed(text) as { readonly name?: unknown } | null)?.name);

function warn(error: Error): void {
  process.emitWarning(error.message, "OncekeyWarning");
}
