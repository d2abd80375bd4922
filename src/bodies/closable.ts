/**
 * The same chunks, whose reader may leave at any moment: `close` is then called at once, before the first chunk and while
 * one is waited for too. A generator's own end would wait for its first step, or for one that hangs.
 */
export function closable(
  chunks: AsyncIterable<Uint8Array>,
  close: () => Promise<void> | void,
): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = chunks[Symbol.asyncIterator]();
      let left = false;
      return {
        next: async () => (left ? { done: true, value: undefined } : iterator.next()),
        async return() {
          left = true;
          await close();
          void iterator.return?.().catch(() => {});
          return { done: true, value: undefined };
        },
      };
    },
  };
}
