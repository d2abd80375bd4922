import type { SubmissionStorage } from "./storage.ts";
import type { SubmissionResult } from "./submission.ts";

/** Options of `createClient`. Durations in milliseconds, each positive and below 2^31. */
export interface ClientOptions {
  /** Where submissions are kept: `indexedDbStorage()`, `localStorageStorage()`, `fileStorage(…)`, `memoryStorage()`, yours. */
  readonly storage: SubmissionStorage;
  /**
   * What sends. Default: the platform's `fetch`. Another one is not believed when it says that a connection was refused: it
   * may have tried more than once.
   */
  readonly fetch?: typeof globalThis.fetch;
  /** Default `Idempotency-Key`. A submission keeps the one that it was made with. */
  readonly keyHeader?: string;
  /** Random keys of UUID version 4 (default), or 7, which tells the time of the action. */
  readonly keyVersion?: 4 | 7;
  /**
   * Asked for every attempt, never kept: credentials, trace headers. They cannot replace what was kept or the key. What it
   * raises, `send` raises; the submission is kept.
   */
  readonly attemptHeaders?: () => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;
  /** Sent with every attempt where set: the instant of the first one, so that the server can refuse what comes too late. */
  readonly firstSentHeader?: string;
  /**
   * For how long after its first attempt a submission is sent again, all attempts together, also after a restart. Keep it
   * below the time for which the server keeps answers; one that tells (`Idempotency-Retention`) shortens it. Default 600,000
   * (10 min).
   */
  readonly retryWindowMs?: number;
  /** How long one attempt may take, and `attemptHeaders` before it. Default 30,000. */
  readonly attemptTimeoutMs?: number;
  /** First bound of the random pause between attempts; it doubles. Default 500. */
  readonly minPauseMs?: number;
  /** Largest bound of the pause, and the longest `Retry-After` that is obeyed. Default 30,000. */
  readonly maxPauseMs?: number;
  /** How long a settled submission is kept, so that a reload or another tab learns its result. Default 86,400,000 (24 h). */
  readonly keepResultMs?: number;
  /** Told of everything that happens. Never of a key, a body or a header's value. What it raises is ignored, also later. */
  readonly onEvent?: (event: ClientEvent) => void;
  /** Wall clock in milliseconds, for tests. Default `Date.now`. */
  readonly now?: () => number;
  /** Steadily growing milliseconds, for tests. Default `performance.now`. */
  readonly monotonicMs?: () => number;
  /** Waits, for tests. Ends early when the signal aborts. */
  readonly pause?: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** From 0 to below 1, for the pauses; keys always come from the platform's cryptographic source. Default `Math.random`. */
  readonly random?: () => number;
}

/** What happened to a submission. */
export type ClientEvent = { readonly name: string } & (
  | { readonly kind: "created" }
  /** A submission of that name was there already: this action goes on with it. */
  | { readonly kind: "found" }
  | { readonly kind: "attempt"; readonly attempt: number }
  /** Another call, tab or process has it; this one waits for the result. */
  | { readonly kind: "waiting_for_other" }
  | { readonly kind: "pause"; readonly delayMs: number; readonly why: PauseWhy }
  /**
   * `storage_cleared`: what was kept is gone. What this client may have sent is kept again, under its key; else this
   * submission is a new one. `result_not_kept`: the result is known here, but could not be stored. `window_shortened`: the
   * server keeps answers for less time than the retry window. `clock_moved`: the wall clock does not fit the time that passed.
   */
  | {
      readonly kind: "warning";
      readonly what: "storage_cleared" | "result_not_kept" | "window_shortened" | "clock_moved";
    }
  | { readonly kind: "ended"; readonly result: SubmissionResult["kind"] }
);

/** Why the next attempt waits. */
export type PauseWhy = "no_answer" | "answer_cut" | "server_error" | "in_progress" | "too_many" | "offline";

/** Options of one sending. */
export interface SendOptions {
  /** Ends the sending, not the submission: it is kept, and goes on with `resume()` or another `send()`. */
  readonly signal?: AbortSignal;
}
