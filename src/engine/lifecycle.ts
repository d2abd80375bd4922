import { type Clock, pause } from "../core/clock.ts";
import { OncekeyError } from "../core/errors.ts";

/** Whether an instance takes work, and how much it has. */
export interface Lifecycle {
  readonly phase: "new" | "started" | "closed";
  /** Raises `oncekey_not_started` or `oncekey_closed`. */
  admit(): void;
  /** Runs admitted work that `close()` waits for. */
  tracked<T>(work: () => Promise<T>): Promise<T>;
  started(): void;
  /** Admits nothing more; waits for running work, at most `graceMs`. Tells whether all of it finished. */
  close(graceMs: number): Promise<boolean>;
}

const DRAIN_POLL_MS = 20;

/** The life of one instance: new, started, closed. */
export function createLifecycle(clock: Clock): Lifecycle {
  let phase: Lifecycle["phase"] = "new";
  let active = 0;
  return {
    get phase() {
      return phase;
    },
    admit: () => admit(phase),
    async tracked(work) {
      admit(phase);
      active++;
      try {
        return await work();
      } finally {
        active--;
      }
    },
    started() {
      phase = "started";
    },
    async close(graceMs) {
      phase = "closed";
      const endAtMs = clock.monotonicMs() + graceMs;
      while (active > 0 && clock.monotonicMs() < endAtMs) await pause(clock, DRAIN_POLL_MS);
      return active === 0;
    },
  };
}

function admit(phase: Lifecycle["phase"]): void {
  if (phase === "new") {
    throw new OncekeyError(
      "oncekey_not_started",
      "The instance has not been started. Nothing was run. Await once.start() before serving.",
    );
  }
  if (phase === "closed") {
    throw new OncekeyError(
      "oncekey_closed",
      "The instance is closed. Nothing was run. Send the request to another instance with the same key.",
    );
  }
}
