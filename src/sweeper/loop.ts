import { pause } from "../core/clock.ts";
import type { SweepAccess } from "../engine/sweeping.ts";

/** What one step of a loop says: there is more to do soon, or nothing for now. */
export type Step = "more" | "nothing";

/** How a loop pauses. */
export interface Pauses {
  readonly nothingMs: number;
  readonly moreMs: number;
  /** Ends the pause early. Where there is one, nothing can be done before: the pause is the long one. */
  wake?(): AbortSignal | undefined;
}

/**
 * Runs the step again and again until the signal aborts or the instance closes, with a spread pause in between, so that
 * sweepers that started together drift apart. What a step raises goes to `onError`; it never ends the loop.
 */
export async function loop(
  { context, lifecycle }: SweepAccess,
  at: string,
  signal: AbortSignal,
  step: () => Promise<Step>,
  pauses: Pauses,
): Promise<void> {
  const { settings } = context;
  while (!signal.aborted && lifecycle.phase === "started") {
    const said = await step().catch((error: unknown): Step => {
      settings.onError(error, { operation: "sweeper", at });
      return "nothing";
    });
    const wake = pauses.wake?.();
    const pauseMs = said === "more" && wake === undefined ? pauses.moreMs : pauses.nothingMs;
    await pause(
      settings.clock,
      pauseMs * (0.75 + settings.random.unit() / 2),
      wake === undefined ? signal : AbortSignal.any([signal, wake]),
    );
  }
}
