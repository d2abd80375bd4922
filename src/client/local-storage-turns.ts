import { sleep } from "./waiting.ts";

/*
 * Every process of a browser has a copy of localStorage of its own, and what one tab writes may reach another one later than
 * a lock that the first has released. So the lock manager, which knows one truth, carries a number: a tab that wrote holds a
 * second, shared lock for a while, whose name says how far it got. Who takes its turn waits until it sees that.
 */

/** The part of `navigator.locks` that is used. */
interface LockManager {
  query(): Promise<{ readonly held?: readonly { readonly name?: string }[] }>;
  request(name: string, options: { readonly mode: "shared" }, run: () => Promise<void>): Promise<void>;
}

/** How far a tab got with a name: what was written last has this number, or was removed after all numbers below it. */
interface Mark {
  readonly number: number;
  readonly removed: boolean;
}

/** Far longer than a write is ever on its way. */
const MARK_HELD_MS = 10_000;
/** What is not seen after so long was cleared by the user. */
const PATIENCE_MS = 2_000;
const LOOK_AGAIN_MS = 5;

/** A number above the one that stands, and above those of tabs that wrote before. */
export const nextNumber = (standing: number | null): number => Math.max(Date.now(), (standing ?? 0) + 1);

/**
 * Runs `run`, for the holder of the Web Lock of that name, once what was written in earlier turns can be seen here. `standing`
 * gives the number that is stored now, `null` where nothing is. Without Web Locks it just runs: a lease travels in the
 * same line as what is written, so it is not seen first.
 */
export async function inTurn<T>(lock: string, standing: () => number | null, run: () => Promise<T>): Promise<T> {
  const { navigator } = globalThis as { navigator?: { readonly locks?: LockManager } };
  const locks = navigator?.locks;
  if (locks === undefined) return run();
  const last = await latestMark(locks, lock);
  for (let waitedMs = 0; !isSeen(last, standing()) && waitedMs < PATIENCE_MS; waitedMs += LOOK_AGAIN_MS)
    await sleep(LOOK_AGAIN_MS);
  const before = standing();
  try {
    return await run();
  } finally {
    const after = standing();
    if (after !== before) await mark(locks, lock, { number: after ?? nextNumber(before), removed: after === null });
  }
}

function isSeen(last: Mark | null, standing: number | null): boolean {
  if (last === null) return true;
  return standing === null ? last.removed : standing > last.number || (standing === last.number && !last.removed);
}

/** No name of another lock begins like that, whatever the submission is called. */
const nameOf = (lock: string, { number, removed }: Mark): string => `${number} ${removed ? "-" : "+"} ${lock}`;

async function latestMark(locks: LockManager, lock: string): Promise<Mark | null> {
  let last: Mark | null = null;
  for (const { name = "" } of (await locks.query()).held ?? []) {
    const [number = "", sign] = name.split(" ", 2);
    const held = { number: Number(number), removed: sign === "-" };
    if (name === nameOf(lock, held) && held.number > (last?.number ?? 0)) last = held;
  }
  return last;
}

/** Resolves when the mark is held. */
function mark(locks: LockManager, lock: string, which: Mark): Promise<void> {
  return new Promise((resolve) => {
    const hold = () => {
      resolve();
      return sleep(MARK_HELD_MS);
    };
    // A page that is about to end gets no more locks: it has written all that it will.
    locks.request(nameOf(lock, which), { mode: "shared" }, hold).catch(() => resolve());
  });
}
