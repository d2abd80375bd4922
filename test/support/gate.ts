/** A promise that a test opens by hand: what waits for it goes on exactly then. */
export interface Gate {
  readonly promise: Promise<void>;
  open(): void;
}

/** Creates a closed gate. */
export function gate(): Gate {
  let open = () => {};
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open: () => open() };
}
