import { pause } from "../core/clock.ts";
import {
  type Held,
  holdDue,
  type SweepAccess,
  type SweepJob,
  type Swept,
  stopHeld,
  sweep,
} from "../engine/sweeping.ts";

/** The places of one operation: the entries of it that this sweeper holds, each under work. */
export interface Places {
  /** Takes at most `most` due entries up, as many as there are free places, and returns how many. Raises the store's errors. */
  fill(most: number): Promise<number>;
  readonly held: number;
  readonly isFull: boolean;
  /** Aborts when the next place is left. */
  readonly freed: AbortSignal;
  /** Resolves when one place is left. One must be taken. */
  oneLeft(): Promise<void>;
  allLeft(): Promise<void>;
  /** Waits for the work under way at most `graceMs`, then stops it and gives its entries back. */
  leave(graceMs: number): Promise<void>;
}

/** Makes the places of one operation. `swept` is told what came of each entry. */
export function createPlaces(
  access: SweepAccess,
  { operation, targets }: SweepJob,
  parallel: number,
  swept: (what: Swept) => void,
): Places {
  const working = new Map<Held, Promise<void>>();
  let freed = new AbortController();
  let turn = 0;
  const work = async (held: Held): Promise<void> => {
    swept(await sweep(access, held));
    working.delete(held);
    freed.abort();
    freed = new AbortController();
  };
  const allLeft = async () => {
    while (working.size > 0) await Promise.all(working.values());
  };
  return {
    async fill(most) {
      let taken = 0;
      // Former names take turns with the present one: no name's backlog stands in front of another's.
      for (let asked = 0; asked < targets.length; asked++) {
        const free = Math.min(parallel - working.size, most - taken);
        const target = targets[turn++ % targets.length];
        if (free <= 0 || target === undefined) break;
        for (const held of await holdDue(access, operation, target, free)) {
          working.set(held, work(held));
          taken++;
        }
      }
      return taken;
    },
    get held() {
      return working.size;
    },
    get isFull() {
      return working.size >= parallel;
    },
    get freed() {
      return freed.signal;
    },
    oneLeft: async () => void (await Promise.race(working.values())),
    allLeft,
    async leave(graceMs) {
      const ended = new AbortController();
      const all = allLeft().then(() => ended.abort());
      await pause(access.context.settings.clock, graceMs, ended.signal);
      for (const held of working.keys()) stopHeld(held);
      await all;
    },
  };
}
