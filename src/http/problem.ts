import type { EntryState } from "../core/entry.ts";
import type { ClientErrorCode } from "../core/errors.ts";

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
