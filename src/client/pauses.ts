import type { Settings } from "./settings.ts";
import type { ClientResponse } from "./submission.ts";

/** An instant in one of the three forms of RFC 9110 §5.6.7, in milliseconds; NaN for anything else. */
export function httpDate(text: string): number {
  // Date.parse takes many other things, and the third form, which names no zone, as local time.
  if (!/^[A-Z][a-z]+,? [\w -]+:\d\d:\d\d [\w ]+$/.test(text)) return Number.NaN;
  return Date.parse(text.endsWith("GMT") ? text : `${text} GMT`);
}

/**
 * What `Retry-After` asks for, in milliseconds: seconds, or an instant, which is held against the answer's own `Date`
 * where it has one, because two clocks differ. `null`: it is absent or makes no sense. Not capped.
 */
export function retryAfterMs({ header }: ClientResponse, nowMs: number): number | null {
  const text = header("retry-after") ?? "";
  const dateMs = httpDate(header("date") ?? "");
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : httpDate(text) - (dateMs || nowMs);
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}

/**
 * How long to wait before the next attempt: anything between 0 and a bound that doubles from `minPauseMs` to `maxPauseMs`
 * (full jitter: callers that failed together must not come back together); after a `Retry-After` no less than that, and up
 * to `minPauseMs` more for the same reason. Never above `maxPauseMs`. `retries`: how many there were already.
 */
export function pauseMs(retries: number, answer: ClientResponse | null, settings: Settings): number {
  const { minPauseMs, maxPauseMs, random, now } = settings;
  const asked = answer && retryAfterMs(answer, now());
  if (asked !== null) return Math.min(maxPauseMs, asked + random() * minPauseMs);
  return random() * Math.min(maxPauseMs, minPauseMs * 2 ** retries);
}
