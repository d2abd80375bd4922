/** Resolves when somebody asks this process to stop: a signal, or the end of the npm that started it. */
export function stopRequest(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => resolve());
    if (process.env.npm_lifecycle_event !== undefined) watchParent(resolve);
  });
}

/** npm passes a signal on to its shell, which dies of it and tells nobody: all that can be seen is another parent. */
function watchParent(orphaned: () => void): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    orphaned();
  }, 200);
  timer.unref();
}
