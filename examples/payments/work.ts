import { createSweeper } from "oncekey/sweeper";
import type { Payments } from "./payments.ts";

/** What runs beside the API: at present the sweeper, which finishes what nobody came back for. */
export interface Worker {
  /** Resolves when the running round is over. */
  stop(): Promise<void>;
}

/** Starts the background work of the example. */
export function startWorker({ once }: Payments): Worker {
  const stopping = new AbortController();
  const running = createSweeper(once, { intervalMs: 500 }).run(stopping.signal);
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
