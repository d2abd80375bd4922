import type { Outcome } from "./outcome.ts";

/** How an entry ends, or what is provisionally known of it. */
export interface Completion {
  readonly state: "succeeded" | "failed";
  readonly outcome: Outcome;
  /** How long the outcome is kept, counted from now. */
  readonly retentionMs: number;
  /** How much longer a tombstone refuses late retries; 0: none. */
  readonly tombstoneMs: number;
}
