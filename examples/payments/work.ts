import { createRelay, type Relay } from "oncekey/outbox";
import { createSweeper, type Sweeper } from "oncekey/sweeper";
import { destinationOf } from "./deliveries.ts";
import type { Payments } from "./payments.ts";
import type { Settings } from "./settings.ts";

/** What runs beside the API, or in a process of its own. */
export interface Loops {
  /** Finishes what nobody came back for, and purges. */
  readonly sweeper: Sweeper;
  /** Delivers what the operations have sent. */
  readonly relay: Relay;
}

/** The background work of the example. */
export function loopsOf({ once }: Payments, settings: Settings): Loops {
  const destination = destinationOf(settings);
  return {
    sweeper: createSweeper(once, { intervalMs: 500 }),
    relay: createRelay(once, { topics: { "invoice.*": destination, "charge.*": destination } }),
  };
}

/** Running background work. */
export interface Worker {
  /** Resolves when what was begun is over. */
  stop(): Promise<void>;
}

/** Starts both loops in this process. */
export function startWorker({ sweeper, relay }: Loops): Worker {
  const stopping = new AbortController();
  const running = Promise.all([sweeper.run(stopping.signal), relay.run(stopping.signal)]);
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
