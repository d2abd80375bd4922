import { StoreFailure } from "../../core/store.ts";

/** Who holds or waits for a row: a transaction, or one write outside any. */
export interface LockHolder {
  /** Whether it has changed the row, or only keeps others from doing so. Left out: it may be about to. */
  changes?(id: string): boolean;
}

/** Row locks as a database has them: first come, first served; a wait that would close a circle is refused. */
export interface RowLocks {
  /**
   * Waits until the row is the holder's; `true` when it was not before. Raises `contention` where waiting would be a
   * deadlock.
   */
  acquire(id: string, holder: LockHolder): Promise<boolean>;
  /** Gives one row back, to the next in line. */
  release(id: string, holder: LockHolder): void;
  /** Gives back all that the holder has. */
  releaseAll(holder: LockHolder): void;
  isLocked(id: string): boolean;
  /** Whether somebody has the row who has not changed it. */
  isOnlyLocked(id: string): boolean;
}

interface RowLock {
  holder: LockHolder;
  readonly queue: { readonly holder: LockHolder; readonly wake: () => void }[];
}

/** Makes an empty set of row locks. */
export function rowLocks(): RowLocks {
  const locks = new Map<string, RowLock>();
  const waitingFor = new Map<LockHolder, string>();

  const closesCircle = (id: string, asking: LockHolder): boolean => {
    let holder = locks.get(id)?.holder;
    while (holder !== undefined && holder !== asking) {
      const awaited = waitingFor.get(holder);
      holder = awaited === undefined ? undefined : locks.get(awaited)?.holder;
    }
    return holder === asking;
  };

  const release = (id: string, holder: LockHolder): void => {
    const lock = locks.get(id);
    if (lock === undefined || lock.holder !== holder) return;
    const next = lock.queue.shift();
    if (next === undefined) {
      locks.delete(id);
      return;
    }
    // Handed over before the waiter runs, so that nobody slips in between.
    lock.holder = next.holder;
    waitingFor.delete(next.holder);
    next.wake();
  };

  return {
    async acquire(id, holder) {
      const lock = locks.get(id);
      if (lock?.holder === holder) return false;
      if (lock === undefined) {
        locks.set(id, { holder, queue: [] });
        return true;
      }
      if (closesCircle(id, holder)) {
        throw new StoreFailure(
          "contention",
          "Two transactions wait for each other's entries. Rolled back; run it again.",
        );
      }
      waitingFor.set(holder, id);
      await new Promise<void>((wake) => lock.queue.push({ holder, wake }));
      return true;
    },
    release,
    releaseAll(holder) {
      for (const [id, lock] of [...locks]) if (lock.holder === holder) release(id, holder);
    },
    isLocked: (id) => locks.has(id),
    isOnlyLocked: (id) => locks.get(id)?.holder.changes?.(id) === false,
  };
}
