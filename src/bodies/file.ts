import { type FileHandle, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type BodyStore, checkPointer } from "../core/body-store.ts";
import { closable } from "./closable.ts";

/** Where bodies lie in the file system. */
export interface FileBodyStoreOptions {
  /**
   * An existing directory that belongs to Oncekey alone, the same for every process: on a network file system if they run
   * on several machines. Below the mount point, so that a volume that is not mounted is missing, not empty.
   */
  readonly directory: string;
}

/**
 * Keeps bodies as files that only their owner may read (0600, in directories of 0700). A file appears whole, under its
 * name, and only once it is on the disk.
 */
export function fileBodyStore({ directory }: FileBodyStoreOptions): BodyStore {
  const made = new Set<string>();
  const pathOf = (pointer: string) => {
    const name = checkPointer(pointer).replace("/", "-");
    return join(directory, name.slice(0, 2), name);
  };
  return {
    name: "file",
    async put(pointer, content, length) {
      const path = pathOf(pointer);
      await makeDirectory(directory, dirname(path), made);
      const part = partOf(path);
      try {
        await writeWhole(part, content, length);
        await rename(part, path);
        await syncDirectory(dirname(path));
      } catch (error) {
        await rm(part, { force: true });
        throw error;
      }
    },
    async get(pointer) {
      const file = await openExisting(directory, pathOf(pointer));
      return file === null ? null : closable(chunksOf(file), () => file.close());
    },
    async remove(pointer) {
      const path = pathOf(pointer);
      // What a process left that died while it wrote has the same name for its beginning.
      await rm(partOf(path), { force: true });
      await rm(path, { force: true });
    },
  };
}

const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;
const CHUNK_BYTES = 65_536;

const partOf = (path: string): string => `${path}.part`;

async function makeDirectory(root: string, path: string, made: Set<string>): Promise<void> {
  try {
    // Never the root itself: it would be made beside a volume that is not mounted.
    await mkdir(path, { mode: DIRECTORY_MODE });
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
  // Also for one that was there: who made it may not have come to that yet.
  if (!made.has(path)) await syncDirectory(root);
  made.add(path);
}

async function writeWhole(path: string, content: AsyncIterable<Uint8Array>, length: number): Promise<void> {
  const file = await open(path, "wx", FILE_MODE);
  try {
    let written = 0;
    for await (const chunk of content) {
      written += chunk.length;
      await writeAll(file, chunk);
    }
    if (written !== length) throw new Error(`A body of ${length} bytes came with ${written}.`);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
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

async function openExisting(root: string, path: string): Promise<FileHandle | null> {
  try {
    return await open(path, "r");
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    // Raises where the whole directory is missing: then nothing is known of the body.
    await stat(root);
    return null;
  }
}

async function* chunksOf(file: FileHandle): AsyncGenerator<Uint8Array> {
  try {
    for (;;) {
      const { buffer, bytesRead } = await file.read(new Uint8Array(CHUNK_BYTES), 0, CHUNK_BYTES, null);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

function codeOf(error: unknown): unknown {
  return (error as { readonly code?: unknown } | null)?.code;
}
