/** Runs when it is first asked, and gives the same ever after: a promise too, whatever becomes of it. */
export function lazily<T>(run: () => T): () => T {
  let known: { readonly value: T } | undefined;
  return () => {
    known ??= { value: run() };
    return known.value;
  };
}
