import type { Clock } from "../core/clock.ts";

/** A clock that stands still until it is told to move; one for the process and the store alike. */
export interface FakeClock {
  /** For `createOncekey({ clock })`. */
  readonly clock: Clock;
  /** Milliseconds since the epoch, for `memoryStore({ clock })`. */
  now(): number;
  /** Moves on by `ms`, firing each timer at its instant and letting what it started run before the next one. */
  advance(ms: number): Promise<void>;
  /** Moves on, step by step, until the promise settles; gives its value or raises its error. Fails after `mostMs`. */
  advanceUntil<T>(promise: Promise<T>, stepMs?: number, mostMs?: number): Promise<T>;
}

const EPOCH_MS = Date.UTC(2026, 0, 1);

/** Creates a clock that starts at 2026-01-01T00:00:00Z. */
export function fakeClock(): FakeClock {
  let nowMs = 0;
  let timers: { readonly atMs: number; readonly fire: () => void }[] = [];
  const clock: Clock = {
    monotonicMs: () => nowMs,
    after(ms, fire) {
      const timer = { atMs: nowMs + Math.max(0, ms), fire };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
  };
  const advance = async (ms: number): Promise<void> => {
    const endMs = nowMs + ms;
    await quiet();
    for (;;) {
      const next = timers.filter((timer) => timer.atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) break;
      timers = timers.filter((timer) => timer !== next);
      nowMs = next.atMs;
      next.fire();
      await quiet();
    }
    nowMs = endMs;
    await quiet();
  };
  return {
    clock,
    now: () => EPOCH_MS + nowMs,
    advance,
    async advanceUntil(promise, stepMs = 10, mostMs = 3_600_000) {
      let settled = false;
      const watched = promise.finally(() => {
        settled = true;
      });
      watched.catch(() => {});
      await quiet();
      for (let passedMs = 0; !settled; passedMs += stepMs) {
        if (passedMs > mostMs) throw new Error(`Nothing settled within ${mostMs} ms of the fake clock.`);
        await advance(stepMs);
      }
      return watched;
    },
  };
}

/** Until the promises that are ready have run: several turns of the event loop, no time. */
async function quiet(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}
