/** Something that is opened at its first use and kept until it breaks; the use after that opens it anew. */
export interface Kept<T> {
  /** The open one. Where the signal aborts before it is open, the next use starts again instead of waiting for it too. */
  use(signal: AbortSignal): Promise<T>;
  /** Lets go of it; a later use opens it again. */
  close(): Promise<void>;
}

/** What opens it. `lost` says that it is broken. */
type Open<T> = (lost: () => void) => Promise<T>;

interface Attempt<T> {
  readonly opened: Promise<T>;
  isOpen: boolean;
}

/** Keeps what `open` opens. `dispose` ends one that is not wanted any more, and must not reject. */
export function kept<T>(open: Open<T>, dispose: (opened: T) => Promise<void>): Kept<T> {
  let current: Attempt<T> | null = null;
  const forget = (attempt: Attempt<T>) => {
    if (current === attempt) current = null;
  };
  const begin = (): Attempt<T> => {
    // In a microtask, so that `lost` and a failure always find the attempt made.
    const opened = Promise.resolve().then(() => open(() => forget(begun)));
    const begun: Attempt<T> = { opened, isOpen: false };
    opened.then(
      async (one) => {
        begun.isOpen = true;
        if (current !== begun) await dispose(one);
      },
      () => forget(begun),
    );
    return begun;
  };
  return {
    use(signal) {
      current ??= begin();
      const used = current;
      const giveUp = () => {
        if (!used.isOpen) forget(used);
      };
      signal.addEventListener("abort", giveUp, { once: true });
      return used.opened.finally(() => signal.removeEventListener("abort", giveUp));
    },
    async close() {
      const last = current;
      current = null;
      if (last?.isOpen === true) await dispose(await last.opened);
    },
  };
}
