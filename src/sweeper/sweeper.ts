import { pause } from "../core/clock.ts";
import type { StoredEntry } from "../core/entry.ts";
import { OncekeyError } from "../core/errors.ts";
import type { Oncekey } from "../engine/oncekey.ts";
import { sweepEntry, sweepTargets } from "../engine/sweeping.ts";

/** How the sweeper works. */
export interface SweeperOptions {
  /** Pause between two rounds that found nothing, in milliseconds. Default 1,000. */
  readonly intervalMs?: number;
  /** Most entries taken up, and most entries purged, in one round. Default 100. */
  readonly batch?: number;
  /** Entries worked on at one time: one slow outside call must not hold up the others. Default 4. */
  readonly parallel?: number;
}

/** What one round did. */
export interface SweepReport {
  /** `phases` entries that were taken up at their recovery point (whatever came of it). */
  readonly resumed: number;
  /** Captured entries whose owner is gone: marked `needs_recovery`. */
  readonly marked: number;
  /** Entries whose resume threw; they stay as their recovery points left them, and the error went to `onError`. */
  readonly failed: number;
  /** Outcomes whose retention was over. */
  readonly purged: number;
}

/** Continues what nobody continues, and deletes what has expired. Any number may run beside each other. */
export interface Sweeper {
  /** One round. Raises what the store raises. */
  runOnce(): Promise<SweepReport>;
  /** Rounds until the signal aborts; errors go to `onError` and the next round tries again. */
  run(signal: AbortSignal): Promise<void>;
}

/** Creates a sweeper for the operations of a started instance. Raises `oncekey_config_invalid` for a bad option. */
export function createSweeper(once: Oncekey<never>, options: SweeperOptions = {}): Sweeper {
  const { intervalMs = 1_000, batch = 100, parallel = 4 } = options;
  if (![intervalMs, batch, parallel].every((value) => Number.isInteger(value) && value >= 1)) {
    throw new OncekeyError(
      "oncekey_config_invalid",
      "intervalMs, batch and parallel must be whole numbers from 1. Nothing was started.",
    );
  }
  const { context } = once.internals;

  const runOnce = async (): Promise<SweepReport> => {
    const entries = await context.store.lapsed(sweepTargets(once.internals), batch);
    const report = { resumed: 0, marked: 0, failed: 0, purged: 0 };
    const work = async () => {
      for (let entry = entries.shift(); entry !== undefined; entry = entries.shift()) {
        const swept = await sweepGuarded(once, entry);
        if (swept !== "left") report[swept]++;
      }
    };
    await Promise.all(Array.from({ length: parallel }, work));
    report.purged = await context.store.purge(batch);
    return report;
  };
  const run = async (signal: AbortSignal): Promise<void> => {
    once.internals.lifecycle.admit();
    while (!signal.aborted && once.internals.lifecycle.phase === "started") {
      const report = await runOnce().catch((error: unknown) => {
        context.settings.onError(error, { operation: "sweeper", at: "round" });
        return undefined;
      });
      const busy = report !== undefined && (report.purged === batch || report.resumed + report.marked === batch);
      if (!busy) await untilNextRound(once, intervalMs, signal);
    }
  };
  return { runOnce, run };
}

/** One poisoned entry must not keep the others from being swept. */
async function sweepGuarded(
  once: Oncekey<never>,
  entry: StoredEntry,
): Promise<"resumed" | "marked" | "failed" | "left"> {
  try {
    return await sweepEntry(once.internals, entry);
  } catch (error) {
    once.internals.context.settings.onError(error, { operation: entry.operation, at: "resume by the sweeper" });
    return "failed";
  }
}

async function untilNextRound(once: Oncekey<never>, intervalMs: number, signal: AbortSignal): Promise<void> {
  const { clock, random } = once.internals.context.settings;
  await pause(clock, intervalMs * (0.75 + random.unit() / 2), signal);
}
