import type { StoredOutcome } from "./stored-outcome.ts";

/** An outcome as completion keeps it; `content: null`: it was too long, only that there was one is kept. */
export type KeptOutcome = StoredOutcome | { readonly status: number; readonly content: null; readonly pointer: null };

/** How an entry ends, or what is provisionally known of it. */
export interface Completion {
  readonly state: "succeeded" | "failed";
  readonly outcome: KeptOutcome;
  /** How long the outcome is kept, counted from now. */
  readonly retentionMs: number;
  /** How much longer a tombstone refuses late retries; 0: none. */
  readonly tombstoneMs: number;
}
