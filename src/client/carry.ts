import { attempt, headersFor } from "./attempt.ts";
import { toBase64 } from "./bytes.ts";
import { pauseMs } from "./pauses.ts";
import { isSent, learnedRetention, overWhy, startStopwatch } from "./retry-window.ts";
import type { Settings } from "./settings.ts";
import type { Shelf } from "./shelf.ts";
import type { StoredSettlement, StoredSubmission, SubmissionResult, UnknownWhy } from "./submission.ts";
import type { Happening, Tell } from "./tell.ts";
import { judge, unknown, type Verdict } from "./verdict.ts";
import { inTime, isOffline, whileOffline } from "./waiting.ts";

/** What carrying a submission out needs. */
export interface CarryContext {
  readonly settings: Settings;
  readonly shelf: Shelf;
  readonly signal: AbortSignal;
  readonly tell: Tell;
}

/**
 * Sends a submission until its result is known, the window is over or the signal aborts: each time the same key and bytes,
 * and never before that attempt is written down. For the holder of its lock. Raises what `attemptHeaders` raises.
 */
export async function carry(start: StoredSubmission, context: CarryContext): Promise<SubmissionResult> {
  const { settings, shelf, signal } = context;
  const { attemptTimeoutMs, maxPauseMs, now, pause } = settings;
  const tell = (happening: Happening) => context.tell(start.name, happening);
  const spent = startStopwatch(start, settings, tell);
  let record = start;
  let last: Verdict | null = null;
  let delayMs: number | null = null;

  const timed = () => ({ ...record, spentMs: Math.round(spent()), spentAt: now() });
  /** Writes down how it stands. Where that fails, what was written before the attempt is on the safe side. */
  const close = async (result: SubmissionResult): Promise<SubmissionResult> => {
    const settled = settlementOf(result, now());
    const ended = { ...timed(), settled };
    await shelf.keep(ended).catch(() => {
      shelf.remember(ended);
      if (settled) tell({ kind: "warning", what: "result_not_kept" });
    });
    return result;
  };

  for (let retries = 0; ; ) {
    const over = overWhy(record, spent() + (delayMs ?? 0), settings);
    // Before the first attempt nothing is written: where the clock went back, what it says today is no use tomorrow.
    if (over) return last ? close(atTheEnd(last, over, isSent(record))) : unknown(over, null, isSent(record));
    if (signal.aborted) return close({ kind: "aborted", sent: isSent(record) });
    const offline = isOffline();
    const why = offline ? "offline" : delayMs !== null && last?.again;
    if (why) {
      const ms = offline ? maxPauseMs : (delayMs ?? 0);
      delayMs = null;
      tell({ kind: "pause", delayMs: ms, why });
      await whileOffline(offline, (back) => pause(ms, back), signal);
    } else {
      const before = record.firstSentAt;
      const firstSentAt = before ?? now();
      const headers = await inTime(headersFor(record, firstSentAt, settings), attemptTimeoutMs, signal);
      // Nobody gave them in time.
      if (!headers) continue;
      const next: StoredSubmission = { ...timed(), firstSentAt, attempts: record.attempts + 1 };
      try {
        await shelf.keep(next);
      } catch (cause) {
        // Later attempts may go on: what they need to be recognised by is stored already.
        if (before === null) return { kind: "not_kept", cause };
      }
      if (signal.aborted) continue;
      tell({ kind: "attempt", attempt: next.attempts });
      last = judge(await attempt(next, headers, settings, signal), next);
      const { response } = last.result;
      const retentionMs = learnedRetention(next.retentionMs, response, settings, tell);
      record = { ...next, retentionMs, firstSentAt: last.begun ? firstSentAt : before };
      if (!last.again) return close(withCertainty(last, before));
      delayMs = pauseMs(retries++, response, settings);
    }
  }
}

/** A refusal that was answered in front of the work tells nothing of an earlier attempt. */
function withCertainty({ result, begun }: Verdict, before: number | null): SubmissionResult {
  return result.kind === "refused" ? { ...result, certain: before === null || begun || result.replayed } : result;
}

/** Time is over. Who was only told to come back later knows that nothing was done. */
function atTheEnd({ result, dark }: Verdict, over: UnknownWhy, sent: boolean): SubmissionResult {
  return !sent && result.kind === "refused" ? result : unknown(dark ? "in_the_dark" : over, result.response, sent);
}

/** A final result as it is stored, without cookies, which are credentials; `null` for one that is not final. */
function settlementOf(result: SubmissionResult, at: number): StoredSettlement | null {
  if (result.kind !== "succeeded" && (result.kind !== "refused" || !result.certain)) return null;
  const { kind, replayed, response } = result;
  const headers = response.headers.filter(([name]) => name !== "set-cookie");
  return { kind, at, replayed, status: response.status, headers, bodyBase64: toBase64(response.body) };
}
