import { pause } from "../core/clock.ts";
import { StoreFailure } from "../core/store.ts";
import { type EngineContext, jittered } from "./context.ts";

const TRIES = 5;

/**
 * Runs a transaction again after serialisation failures and deadlocks: its closure was rolled back and has no outside
 * effects. Raises the last failure when they outlast the tries.
 */
export async function uncontended<T>(context: EngineContext, run: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await run();
    } catch (error) {
      const isContention = error instanceof StoreFailure && error.kind === "contention";
      if (!isContention || tried >= TRIES) throw error;
      await pause(context.settings.clock, jittered(context, 10, tried, 500));
    }
  }
}
