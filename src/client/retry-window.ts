import type { Settings } from "./settings.ts";
import type { ClientResponse, StoredSubmission, UnknownWhy } from "./submission.ts";
import type { Happening } from "./tell.ts";

/** Clocks are corrected by a little all the time; a difference below this tells nothing. */
const TOLERANCE_MS = 5_000;

/** Longer than any clock tells, and a number that JSON holds. */
const ENDLESS_MS = 1e15;

/** How much of the retry window is used up by now, in milliseconds. */
export type Stopwatch = () => number;

/**
 * Starts to count. What passed since the record was written is told by the wall clock; from here on the monotonic clock
 * counts, and the wall clock where it is ahead: a computer that slept has a monotonic clock that stood still, and sending
 * too late may run the work again. Where the wall clock has gone back since the record was written, nobody can tell what
 * passed: it counts as too much. A submission of which no attempt can have been carried out begins anew, whatever the
 * clocks say.
 */
export function startStopwatch(
  record: StoredSubmission,
  settings: Settings,
  tell: (happening: Happening) => void,
): Stopwatch {
  const { now, monotonicMs } = settings;
  const wallStart = now();
  const steadyStart = monotonicMs();
  let beforeMs = 0;
  if (isSent(record)) {
    const passedMs = wallStart - record.spentAt;
    beforeMs = passedMs >= -TOLERANCE_MS ? record.spentMs + Math.max(0, passedMs) : ENDLESS_MS;
  }
  let told = false;
  return () => {
    const steadyMs = monotonicMs() - steadyStart;
    const wallMs = now() - wallStart;
    if (!told && (beforeMs === ENDLESS_MS || Math.abs(wallMs - steadyMs) > TOLERANCE_MS)) {
      told = true;
      tell({ kind: "warning", what: "clock_moved" });
    }
    return beforeMs + Math.max(steadyMs, wallMs);
  };
}

/** Whether an attempt may have been carried out. */
export function isSent({ firstSentAt }: StoredSubmission): boolean {
  return firstSentAt !== null;
}

/**
 * Until when the server surely knows the key, in milliseconds after the first attempt: its retention less what one attempt
 * may take to arrive, or less a tenth of a short one. Infinite where it has not said.
 */
function rememberedMs(retentionMs: number | null, { attemptTimeoutMs }: Settings): number {
  const ms = retentionMs ?? ENDLESS_MS;
  return ms - Math.min(attemptTimeoutMs, ms / 10);
}

/** Why no further attempt may start `spentMs` after the first one; `null`: it may. */
export function overWhy(record: StoredSubmission, spentMs: number, settings: Settings): UnknownWhy | null {
  // What was never carried out cannot be carried out twice.
  if (isSent(record) && spentMs >= rememberedMs(record.retentionMs, settings)) return "retention_over";
  return spentMs < settings.retryWindowMs ? null : "window_over";
}

/** What the server says of its retention (seconds), in milliseconds; the shortest that was ever said counts. */
export function learnedRetention(
  known: number | null,
  answer: ClientResponse | null,
  settings: Settings,
  tell: (happening: Happening) => void,
): number | null {
  const text = answer?.header("idempotency-retention") ?? "";
  const saidMs = Number(text) * 1_000;
  if (!/^\d{1,10}$/.test(text) || (known !== null && known <= saidMs)) return known;
  if (rememberedMs(saidMs, settings) < settings.retryWindowMs) tell({ kind: "warning", what: "window_shortened" });
  return saidMs;
}
