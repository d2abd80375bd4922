import { type Session, TransactionAbandoned } from "../core/store.ts";
import { orAbandoned } from "./abandon.ts";
import type { Attempt } from "./attempt.ts";
import { limitsOf } from "./context.ts";
import { LeaseLost } from "./lease.ts";
import { uncontended } from "./uncontended.ts";

/** One transaction of the attempt; its closure runs again after serialisation failures, under the same fence. */
export async function inTransaction<T>(
  attempt: Attempt,
  name: string,
  body: (session: Session<unknown>) => Promise<T>,
): Promise<T> {
  const { context, lease } = attempt;
  const limits = limitsOf(context, lease.maxDurationMs);
  try {
    return await uncontended(context, async () => {
      const value = await context.store.transaction(async (session) => {
        if (!(await session.enter(lease.id, lease.fence, limits))) throw new LeaseLost("another attempt took over");
        await context.point(`phase:${name}:entered`);
        // Waiting for a connection may have taken longer than the lease.
        lease.check();
        return orAbandoned(context, body(session), lease.signal);
      });
      await context.point(`phase:${name}:committed`);
      return value;
    });
  } catch (error) {
    if (error instanceof TransactionAbandoned) throw new LeaseLost("its time ran out inside a transaction");
    throw error;
  }
}
