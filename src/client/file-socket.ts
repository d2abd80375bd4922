import { randomBytes } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { basename, dirname, join } from "node:path";
import { codeOf } from "./file-whole.ts";

/** A socket that tells by its being there that its process lives. */
export interface Listener {
  /** Its file's name: random, never used again. */
  readonly name: string;
  /** Ends it, and with it the connections of all who wait. */
  close(): void;
}

/** The shortest limit of the systems (macOS: 104 bytes with a zero at the end). */
const MAX_PATH_BYTES = 103;

/** Listens on a new socket in that directory. It keeps no process running. */
export async function listen(directory: string): Promise<Listener> {
  const name = randomBytes(9).toString("hex");
  const waiting = new Set<Socket>();
  const server = createServer((socket) => {
    waiting.add(socket.unref());
    socket.on("error", () => {});
    socket.on("close", () => waiting.delete(socket));
  }).unref();
  await withShortPath(join(directory, name), (path) => listening(server, path));
  return {
    name,
    close() {
      server.close();
      for (const socket of waiting) socket.destroy();
    },
  };
}

/** Whether some process listens on that socket. Raises where that cannot be told. */
export async function isListening(path: string): Promise<boolean> {
  const socket = await reach(path);
  if (typeof socket === "boolean") return socket;
  socket.destroy();
  return true;
}

/**
 * Waits until the process at that socket closes it or ends; `pauseMs` at the least where it does not answer. The wait ends
 * when the signal aborts.
 */
export async function awaitEnd(path: string, pauseMs: number, signal?: AbortSignal): Promise<void> {
  const socket = await reach(path);
  if (socket === false) return;
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      if (socket !== true) socket.destroy();
      resolve();
    };
    const timer = socket === true ? setTimeout(end, pauseMs) : undefined;
    if (socket !== true) socket.once("close", end).resume();
    signal?.addEventListener("abort", end, { once: true });
    if (signal?.aborted) end();
  });
}

/**
 * A connection; `false`: nobody listens there (any more); `true`: somebody does, but so many wait that none more may. Other
 * errors are raised: nobody knows then whether the lock is held.
 */
function reach(path: string): Promise<Socket | boolean> {
  return withShortPath(path, connecting).catch((error: unknown) => {
    const code = codeOf(error);
    if (code === "ECONNREFUSED" || code === "ENOENT") return false;
    if (code === "EAGAIN" || code === "ECONNRESET") return true;
    throw error;
  });
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    // `exclusive`: in a worker of `node:cluster` the socket must end with the worker, not with the primary.
    server.listen({ path, exclusive: true }, () => {
      server.off("error", reject);
      server.on("error", () => {});
      resolve();
    });
  });
}

function connecting(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject);
      socket.on("error", () => {});
      resolve(socket);
    });
  });
}

/** Paths of sockets are limited to about a hundred bytes; longer ones go by the open directory where the system offers that. */
async function withShortPath<T>(path: string, use: (path: string) => Promise<T>): Promise<T> {
  if (Buffer.byteLength(path) <= MAX_PATH_BYTES) return use(path);
  if (process.platform !== "linux")
    throw new Error(`The path of a lock has more than ${MAX_PATH_BYTES} bytes: ${path}. Choose a shorter directory.`);
  const directory: FileHandle = await open(dirname(path), "r");
  try {
    return await use(`/proc/self/fd/${directory.fd}/${basename(path)}`);
  } finally {
    await directory.close();
  }
}
