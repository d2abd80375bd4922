import { randomBytes } from "node:crypto";
import { close, closeSync, constants, openSync, read, unlinkSync, write } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { LongBody, OutcomeBody } from "../core/outcome.ts";

/** What is not longer stays in memory. */
const IN_MEMORY_BYTES = 65_536;
const CHUNK_BYTES = 65_536;

const closeFile = promisify(close);
const readAt = promisify(read);
const writeTo = promisify(write);

/**
 * Reads all the chunks and gives them as one body: a short one in memory, a long one in a file that has no name any more,
 * so that nothing is left of it after a crash. Raises what the chunks raise, and the file system's errors.
 */
export async function holdBytes(chunks: AsyncIterable<Uint8Array>): Promise<OutcomeBody> {
  const early: Uint8Array[] = [];
  let length = 0;
  let fd: number | null = null;
  try {
    for await (const chunk of chunks) {
      length += chunk.length;
      if (fd === null && length <= IN_MEMORY_BYTES) {
        early.push(chunk);
        continue;
      }
      if (fd === null) fd = namelessFile();
      for (const part of [...early.splice(0), chunk]) await writeAll(fd, part);
    }
  } catch (error) {
    if (fd !== null) await closeFile(fd);
    throw error;
  }
  return fd === null ? new Uint8Array(Buffer.concat(early)) : heldFile(fd, length);
}

/** Opens a temporary file that only this process can reach: it loses its name at once. Raises the file system's errors. */
export function namelessFile(): number {
  const path = join(tmpdir(), `oncekey-${randomBytes(16).toString("hex")}`);
  const fd = openSync(path, constants.O_CREAT | constants.O_EXCL | constants.O_RDWR, 0o600);
  try {
    unlinkSync(path);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  return fd;
}

async function writeAll(fd: number, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    at += (await writeTo(fd, bytes, at, bytes.length - at, null)).bytesWritten;
  }
}

/** The file and who needs it. A number that is closed while it is read may be another file's by then. */
interface HeldFile {
  readonly fd: number;
  readonly length: number;
  holders: number;
  reading: number;
}

/** The first `length` bytes of an open file as a body, which closes the file when its last holder lets go. */
export function heldFile(fd: number, length: number): LongBody {
  return holder({ fd, length, holders: 0, reading: 0 });
}

/** A holder that is forgotten without a release gives its place back when it is collected. */
const forgotten = new FinalizationRegistry<HeldFile>((file) => void letGo(file).catch(() => {}));

function holder(file: HeldFile): LongBody {
  file.holders++;
  let holds = true;
  const body: LongBody = {
    length: file.length,
    async *chunks() {
      // Its own name keeps the holder from being collected while only its chunks are in use.
      for (let at = 0; at < body.length; ) {
        if (!holds) throw new Error("The bytes were let go of while they were read.");
        const chunk = await readSome(file, at);
        at += chunk.length;
        yield chunk;
      }
    },
    share: () => (file.holders > 0 ? holder(file) : null),
    async release() {
      if (!holds) return;
      holds = false;
      forgotten.unregister(body);
      await letGo(file);
    },
  };
  forgotten.register(body, file, body);
  return body;
}

async function readSome(file: HeldFile, at: number): Promise<Uint8Array> {
  file.reading++;
  try {
    const chunk = new Uint8Array(Math.min(CHUNK_BYTES, file.length - at));
    const { bytesRead } = await readAt(file.fd, chunk, 0, chunk.length, at);
    if (bytesRead === 0) throw new Error("The temporary file of a body ended early.");
    return chunk.subarray(0, bytesRead);
  } finally {
    file.reading--;
    await closeUnused(file);
  }
}

async function letGo(file: HeldFile): Promise<void> {
  file.holders--;
  await closeUnused(file);
}

async function closeUnused({ fd, holders, reading }: HeldFile): Promise<void> {
  if (holders === 0 && reading === 0) await closeFile(fd);
}
