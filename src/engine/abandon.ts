import { TransactionAbandoned } from "../core/store.ts";
import type { EngineContext } from "./context.ts";
import { LeaseLost } from "./lease.ts";
import { untilAborted } from "./until-aborted.ts";

/**
 * The value of code that runs inside a transaction, or {@link TransactionAbandoned} when the signal aborts first, so that
 * a handler which hangs does not keep its connection. Where the store cannot give a transaction up, the code is awaited:
 * the server's idle time-out has to end it.
 */
export async function orAbandoned<T>(context: EngineContext, running: Promise<T>, signal: AbortSignal): Promise<T> {
  if (!context.store.traits.abandons) return running;
  try {
    return await untilAborted(running, signal);
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error;
    throw new TransactionAbandoned("the operation lost its time or its lease");
  }
}

/** Runs code inside a transaction for at most `maxDurationMs`; past that, {@link TransactionAbandoned} as above. */
export async function withinTime<T>(
  context: EngineContext,
  maxDurationMs: number,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const overdue = new AbortController();
  const end = () => overdue.abort(new LeaseLost("maxDurationMs is over"));
  const cancel = context.settings.clock.after(maxDurationMs, end);
  try {
    return await orAbandoned(context, run(overdue.signal), overdue.signal);
  } finally {
    cancel();
  }
}
