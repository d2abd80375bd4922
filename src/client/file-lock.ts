import { mkdir, readdir, rename, rm, rmdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { awaitEnd, isListening, type Listener, listen } from "./file-socket.ts";
import { codeOf, isMissing, leftParts, makeDirectory, newPart } from "./file-whole.ts";

/*
 * A lock is a directory `<lock>.lock` that holds one socket, on which the holder listens. The kernel closes a socket with its
 * process, so a connection tells whether the holder lives, with no process ids and no time-outs, and its end wakes those
 * who wait.
 *
 * - Taking it: a directory with one's own listening socket in it is made aside and renamed. That succeeds only where there
 *   is none of that name, or an empty one, for one of any number of contenders: the kernel does it in one step.
 * - A dead holder's socket refuses connections; it is unlinked by its name, which is random and never used again. So
 *   nobody can unlink a later holder's socket by mistake, however late it comes, and the emptied directory is free.
 */

const DIRECTORY_MODE = 0o700;
const NEXT_TRY_MS = 20;
const MOST_ATTEMPTS = 5;

/**
 * Waits until the lock is free or its holder is dead, and takes it. Gives what releases it. The wait ends with the signal's
 * reason when the signal aborts. Raises what the file system raises.
 */
export async function holdLock(directory: string, lock: string, signal?: AbortSignal): Promise<() => Promise<void>> {
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    try {
      return await holdWith(await standBy(directory, lock), join(directory, `${lock}.lock`), signal);
    } catch (error) {
      // Somebody took what was made aside for left over (a process that slept for long). Nothing is held: begin again.
      if (!isMissing(error) || attempt === MOST_ATTEMPTS) throw error;
      await makeDirectory(directory);
    }
  }
}

async function holdWith(own: Contender, path: string, signal?: AbortSignal): Promise<() => Promise<void>> {
  let last: string | null = null;
  try {
    while (!(await take(own, path))) {
      const holder = await livingHolder(path);
      // Its connection ended, but it lives: it can take no more connections. It is asked again, at times.
      if (holder !== null && holder === last) await setTimeout(NEXT_TRY_MS);
      if (holder !== null) await awaitEnd(holder, NEXT_TRY_MS, signal);
      signal?.throwIfAborted();
      last = holder;
    }
  } catch (error) {
    await leave(own);
    throw error;
  }
  return () => release(own, path);
}

/** Removes what contenders left that died before they took a lock, and the locks of dead holders. */
export async function removeDeadLocks(directory: string): Promise<void> {
  for (const { path, isDirectory } of await leftParts(directory)) if (isDirectory) await removeDead(path);
  for (const name of await readdir(directory)) {
    if (!name.endsWith(".lock")) continue;
    const path = join(directory, name);
    if ((await livingHolder(path)) === null) await rmdir(path).catch(() => {});
  }
}

/** A socket in a directory of its own, ready to become the lock. */
interface Contender {
  /** Where it was made, until it is renamed. */
  readonly aside: string;
  readonly listener: Listener;
}

async function standBy(directory: string, lock: string): Promise<Contender> {
  const aside = join(directory, newPart(lock));
  await mkdir(aside, { mode: DIRECTORY_MODE });
  try {
    return { aside, listener: await listen(aside) };
  } catch (error) {
    await rm(aside, { recursive: true, force: true });
    throw error;
  }
}

async function take({ aside }: Contender, path: string): Promise<boolean> {
  try {
    await rename(aside, path);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOTEMPTY" || codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

async function leave({ aside, listener }: Contender): Promise<void> {
  listener.close();
  await rm(aside, { recursive: true, force: true });
}

/** The socket is unlinked first, and then closed: those who wait find the lock free when they wake. */
async function release({ listener }: Contender, path: string): Promise<void> {
  try {
    await rm(join(path, listener.name), { force: true });
    await rmdir(path);
  } catch {
    // Somebody took the emptied directory already. Or it cannot be emptied: then the closed socket says that it is free.
  } finally {
    listener.close();
  }
}

/** The socket of the one that holds the lock, or `null` where nobody does; sockets of the dead are removed. */
async function livingHolder(path: string): Promise<string | null> {
  for (const name of await entriesOf(path)) {
    const socket = join(path, name);
    if (await isListening(socket)) return socket;
    await rm(socket, { force: true });
  }
  return null;
}

/** Renamed before it is emptied, so that it never becomes a lock while it is being removed. */
async function removeDead(aside: string): Promise<void> {
  for (const name of await entriesOf(aside)) if (await isListening(join(aside, name))) return;
  const away = join(aside, "..", newPart(basename(aside).slice(0, 8)));
  await rename(aside, away).catch(() => {});
  await rm(away, { recursive: true, force: true });
}

async function entriesOf(path: string): Promise<string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
