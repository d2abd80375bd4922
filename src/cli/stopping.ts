/** Aborts at the first SIGTERM or SIGINT; the second one ends the process, whatever still runs: leases see to the rest. */
export function stopRequest(): AbortController {
  const stopping = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      if (stopping.signal.aborted) process.exit(1);
      stopping.abort();
    });
  }
  return stopping;
}

/** Resolves when it has. Keeps the process alive meanwhile: timers alone may not. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const keepAlive = setInterval(() => {}, 2 ** 30);
    const end = () => {
      clearInterval(keepAlive);
      resolve();
    };
    signal.addEventListener("abort", end, { once: true });
  });
}
