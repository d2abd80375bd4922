import type { HeaderLine } from "./outcome.ts";

/** What an answer of a captured handler means for its key: only what is proven is final. */
export type AnswerMeaning =
  /** Done: stored and replayed. */
  | "succeeded"
  /** Refused by the handler: stored and replayed. */
  | "failed"
  /** Refused before anything began: the key is free again. */
  | "not_begun"
  /** A 5xx after the handler began: nobody knows. */
  | "unknown";

/** Statuses that mean "not begun" by default: authentication, authorisation, too early, too many, timed out while reading. */
export const NOT_BEGUN_STATUSES: readonly number[] = [401, 403, 408, 425, 429];

/** Sorts an answer. A 503 with Retry-After says "come back, I did nothing"; any other 5xx says nothing at all. */
export function meaningOf(
  answer: { readonly status: number; readonly headers: readonly HeaderLine[] },
  notBegun: readonly number[],
): AnswerMeaning {
  const { status, headers } = answer;
  if (notBegun.includes(status)) return "not_begun";
  if (status === 503 && headers.some(([name]) => name.toLowerCase() === "retry-after")) return "not_begun";
  if (status >= 500) return "unknown";
  return status >= 400 ? "failed" : "succeeded";
}
