/** Runs with a signal that aborts with the given one, and in any case when the run has ended. */
export function within<T>(signal: AbortSignal, run: (over: AbortController) => Promise<T>): Promise<T> {
  const over = new AbortController();
  const end = () => over.abort(signal.reason);
  signal.addEventListener("abort", end, { signal: over.signal });
  if (signal.aborted) end();
  return run(over).finally(end);
}

/** Waits, or ends early when the signal aborts; never raises. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
  });
}

/** The promise's value, or nothing where the time is over or the signal aborts first. */
export function inTime<T>(promise: Promise<T>, ms: number, signal: AbortSignal): Promise<T | undefined> {
  return within(signal, (over) => Promise.race([promise, sleep(ms, over.signal) as Promise<undefined>]));
}

/** The parts of a page that tell whether it is online; workers have them too. */
interface Network {
  readonly navigator?: { readonly onLine?: boolean };
  addEventListener?(type: "online", run: () => void, options: { readonly signal: AbortSignal }): void;
}

/** Whether the platform says that there is no network. One that says nothing counts as online. */
export function isOffline(): boolean {
  return (globalThis as Network).navigator?.onLine === false;
}

/** Waits; where there was no network, only until the platform says that it is back. */
export function whileOffline(
  offline: boolean,
  wait: (back: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  return within(signal, (over) => {
    const network = offline ? (globalThis as Network) : {};
    network.addEventListener?.("online", () => over.abort(), { signal: over.signal });
    return wait(over.signal);
  });
}
