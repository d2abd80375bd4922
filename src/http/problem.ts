import type { EntryState } from "../core/entry.ts";
import { type ClientErrorCode, codes } from "../core/errors.ts";
import { stringifyJson } from "../core/json/stringify.ts";
import type { HeaderLine } from "../core/outcome.ts";
import type { Answer } from "./exchange.ts";
import type { Profile } from "./profile.ts";

/** What a problem body says of the key's entry; `none`: there is none, or the request never got that far. */
export type ProblemState = EntryState | "none";

/** A refusal of ours, before it is written. */
export interface Problem {
  readonly code: ClientErrorCode;
  /** What happened, what was kept, what to do next. Never a key, body, token or header value. */
  readonly detail: string;
  readonly state: ProblemState;
  /** When to come back, in milliseconds; absent: no `Retry-After`. */
  readonly retryAfterMs?: number | undefined;
}

const LONGEST_RETRY_AFTER_S = 3_600;

/**
 * `Retry-After` in whole seconds (RFC 9110 §10.2.3): rounded up, because a client that comes back too early only waits
 * again; never 0; at most an hour, so that one wrong instant cannot send clients away for days.
 */
function retryAfter(ms: number): HeaderLine {
  const seconds = Math.ceil(ms / 1_000);
  return ["retry-after", String(Math.min(Math.max(Number.isNaN(seconds) ? 1 : seconds, 1), LONGEST_RETRY_AFTER_S))];
}

/**
 * A problem as an answer (RFC 9457). `type` is the reference `/problems/<code>`: stable, free of any host, and not
 * `about:blank`, which would claim that there is nothing to say beyond the status. `code`, `retry` and `state` are for
 * programs, `title` and `detail` for people.
 */
export function problemAnswer(profile: Profile, problem: Problem): Answer {
  const { code, detail, state, retryAfterMs } = problem;
  const { status, retry, title } = codes[code];
  const value = { type: `/problems/${code}`, title, status, detail, code, retry, state };
  const body = new TextEncoder().encode(stringifyJson(value));
  const headers: HeaderLine[] = [
    ["content-type", profile.problemType],
    // A shared cache must not answer the next caller with this one's refusal (RFC 9111 §4.2.2: some 4xx are cacheable).
    ["cache-control", "no-store"],
    ["content-length", String(body.length)],
  ];
  if (retryAfterMs !== undefined) headers.push(retryAfter(retryAfterMs));
  return { status, headers, body };
}

/** The refusal of a binding's `authorize` that gave no answer of its own: 403. */
export function forbiddenAnswer(profile: Profile): Answer {
  const detail =
    "The caller may not do this. Nothing was run or changed; the same request may be sent once it is allowed.";
  return problemAnswer(profile, { code: "idempotency_forbidden", detail, state: "none" });
}
