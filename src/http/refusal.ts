import type { HeaderLine } from "../core/outcome.ts";
import type { Answer } from "./exchange.ts";
import type { Problem } from "./problem.ts";
import type { Profile } from "./profile.ts";
import type { Asked } from "./profile-request.ts";

const LONGEST_RETRY_AFTER_S = 3_600;

/**
 * `Retry-After` in whole seconds (RFC 9110 §10.2.3): rounded up, because a client that comes back too early only waits
 * again; never 0; at most an hour, so that one wrong instant cannot send clients away for days.
 */
function retryAfter(ms: number): HeaderLine {
  const seconds = Math.ceil(ms / 1_000);
  return ["retry-after", String(Math.min(Math.max(Number.isNaN(seconds) ? 1 : seconds, 1), LONGEST_RETRY_AFTER_S))];
}

/** A problem as an answer, in the words of the dialect. */
export function problemAnswer(profile: Profile, problem: Problem, asked: Asked): Answer {
  const { code, retryAfterMs } = problem;
  const row = profile.refusals[code];
  const body = new TextEncoder().encode(profile.write(row, problem, asked));
  const headers: HeaderLine[] = [
    ["content-type", profile.mediaType],
    // A shared cache must not answer the next caller with this one's refusal (RFC 9111 §4.2.2: some 4xx are cacheable).
    ["cache-control", "no-store"],
    ["content-length", String(body.length)],
  ];
  if (retryAfterMs !== undefined) headers.push(retryAfter(retryAfterMs));
  headers.push(...(profile.headers?.({ kind: "refused", status: row.status, code }, asked) ?? []));
  return { status: row.status, headers, body };
}

/** The refusal of a binding's `authorize` that gave no answer of its own. */
export function forbiddenAnswer(profile: Profile, asked: Asked): Answer {
  const detail =
    "The caller may not do this. Nothing was run or changed; the same request may be sent once it is allowed.";
  return problemAnswer(profile, { code: "idempotency_forbidden", detail, state: "none" }, asked);
}
