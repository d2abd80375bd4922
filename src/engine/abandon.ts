import { TransactionAbandoned } from "../core/store.ts";
import type { EngineContext } from "./context.ts";

/**
 * The value of code that runs inside a transaction, or {@link TransactionAbandoned} when the signal aborts first, so that
 * a handler which hangs does not keep its connection. Where the store cannot give a transaction up, the code is awaited:
 * the server's idle time-out has to end it.
 */
export function orAbandoned<T>(context: EngineContext, running: Promise<T>, signal: AbortSignal): Promise<T> {
  if (!context.store.traits.abandons) return running;
  return new Promise((resolve, reject) => {
    const abandon = () => reject(new TransactionAbandoned("the operation lost its time or its lease"));
    if (signal.aborted) return abandon();
    signal.addEventListener("abort", abandon, { once: true });
    running.then(resolve, reject).finally(() => signal.removeEventListener("abort", abandon));
  });
}
