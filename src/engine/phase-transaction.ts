import { pause } from "../core/clock.ts";
import { type Session, TransactionAbandoned } from "../core/store.ts";
import { orAbandoned } from "./abandon.ts";
import type { Attempt } from "./attempt.ts";
import { jittered, transactionLimits } from "./context.ts";
import { isContention } from "./failures.ts";
import { LeaseLost } from "./lease.ts";

const CONTENTION_TRIES = 5;

/** One transaction of the attempt; its closure runs again after serialisation failures, under the same fence. */
export async function inTransaction<T>(
  attempt: Attempt,
  name: string,
  body: (session: Session<unknown>) => Promise<T>,
): Promise<T> {
  const { context, operation, lease } = attempt;
  const limits = transactionLimits(context, operation);
  for (let tried = 1; ; tried++) {
    try {
      const value = await context.store.transaction(async (session) => {
        if (!(await session.enter(lease.id, lease.fence, limits))) throw new LeaseLost("another attempt took over");
        await context.point(`phase:${name}:entered`);
        // Waiting for a connection may have taken longer than the lease.
        lease.check();
        return orAbandoned(context, body(session), lease.signal);
      });
      await context.point(`phase:${name}:committed`);
      return value;
    } catch (error) {
      if (error instanceof TransactionAbandoned) throw new LeaseLost("its time ran out inside a transaction");
      if (!isContention(error) || tried >= CONTENTION_TRIES) throw error;
      await pause(context.settings.clock, jittered(context, 10, tried, 500));
    }
  }
}
