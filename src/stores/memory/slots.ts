/** How many may be inside at once; the others wait in line. */
export interface Slots {
  enter(): Promise<void>;
  leave(): void;
}

/** Makes slots for `size` at once; `Infinity`: nobody ever waits. */
export function slots(size: number): Slots {
  const queue: (() => void)[] = [];
  let free = size;
  return {
    async enter() {
      if (free > 0) free -= 1;
      else await new Promise<void>((wake) => queue.push(wake));
    },
    leave() {
      const next = queue.shift();
      if (next === undefined) free += 1;
      else next();
    },
  };
}
