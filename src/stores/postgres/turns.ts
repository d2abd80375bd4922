/** Takes a turn, and gives the function that ends it. */
export type TakeTurn = () => Promise<() => void>;

/** Lets at most `limit` holders in at a time, first come, first served. */
export function turns(limit: number): TakeTurn {
  const waiting: (() => void)[] = [];
  let free = limit;
  const end = () => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return async () => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    let ended = false;
    return () => {
      if (!ended) end();
      ended = true;
    };
  };
}

/** Does the work inside a turn. */
export async function during<R>(take: TakeTurn, work: () => Promise<R>): Promise<R> {
  const end = await take();
  try {
    return await work();
  } finally {
    end();
  }
}
