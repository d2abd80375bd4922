/**
 * The local clock: pauses and deadlines of this process only. Nothing stored is ever compared with it; what decides
 * between processes is the store's clock.
 */
export interface Clock {
  /** Milliseconds on a clock that never goes back and does not follow changes of the wall clock. */
  monotonicMs(): number;
  /** Calls `fire` once after `ms`; the returned function takes that back. Must not keep the process alive. */
  after(ms: number, fire: () => void): () => void;
}

/** Node's own monotonic clock and timers. */
export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  after(ms, fire) {
    const timer = setTimeout(fire, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/**
 * Resolves after `ms`, or when the signal aborts. A pause somebody waits for, so it keeps the process alive until it is
 * over.
 */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    // The clock's timers are unreferenced; a pending pause must still be finished before the process may end.
    const keepAlive = setInterval(() => {}, 2 ** 30);
    const end = () => {
      clearInterval(keepAlive);
      cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.after(ms, end);
    signal?.addEventListener("abort", end);
  });
}
