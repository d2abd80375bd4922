/**
 * What the work gives, or the signal's reason when it aborts first. The work cannot be stopped and may still fail later:
 * it has its handlers from the first moment, or that failure would be an unhandled rejection and end the process.
 */
export function untilAborted<T>(running: Promise<T> | T, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = () => reject(signal.reason);
    // JavaScript may give a plain value; a call that was answered must not count as one that failed.
    Promise.resolve(running)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", aborted));
    if (signal.aborted) aborted();
    else signal.addEventListener("abort", aborted, { once: true });
  });
}
