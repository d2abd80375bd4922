import type { Cipher } from "./cipher.ts";
import type { Completion } from "./completion.ts";
import type { EntryState } from "./entry.ts";
import type { Intent } from "./intent.ts";
import type { StoredOutcome } from "./stored-outcome.ts";

/** What an operator decides about an entry: it has an outcome, or it is given back. */
export type Resolution = Verdict & Decision;

/** What was decided. */
export type Verdict =
  | {
      readonly verdict: Completion["state"];
      /** The outcome that every retry gets from now on. */
      readonly completion: Omit<Completion, "state">;
    }
  | { readonly verdict: "released"; readonly completion: null };

/** How, and by whom. */
export interface Decision {
  /**
   * The attempt that the entry was at when whoever decides looked at the other side; `null`: the decision holds whatever was
   * attempted since. "It was not done" never does: a later attempt may have done it.
   */
  readonly attempt: number | null;
  /** Decides also while something sent may still land. */
  readonly force: boolean;
  /** Who decides, for the audit. */
  readonly by: string;
  readonly note: string | null;
  /** The owner token under which the entry is claimed; whoever owned it before can commit nothing more. */
  readonly fence: Uint8Array;
}

/** What became of a decision. Only `resolved` changed anything. */
export type Resolved =
  | { readonly kind: "resolved"; readonly from: EntryState; readonly openIntents: readonly Intent[] }
  | { readonly kind: "absent" }
  /** It has an outcome already. */
  | { readonly kind: "finished"; readonly state: EntryState }
  /** Its owner is still at work; come back after `claimableInMs`. */
  | { readonly kind: "running"; readonly claimableInMs: number }
  /** It was attempted again since the look that the decision rests on. */
  | { readonly kind: "changed"; readonly attempt: number }
  /** Something sent may still land: for `settlesInMs` more, or (`null`) for a time that nobody declared. */
  | { readonly kind: "unsettled"; readonly openIntents: readonly Intent[]; readonly settlesInMs: number | null };

/** The completion that a decision stores; `null` where it gives the entry back. */
export function decidedCompletion(resolution: Resolution): Completion | null {
  if (resolution.verdict === "released") return null;
  return { ...resolution.completion, state: resolution.verdict };
}

/** Bytes of a decision's fence: as long as that of any owner. */
export const DECISION_FENCE_LENGTH = 16;

/** How long a decided outcome is replayed where nobody says, in milliseconds: the default of `retentionMs`. */
export const DECIDED_RETENTION_MS = 86_400_000;

/** The decision with its outcome sealed as an instance with these keys does it; without keys as it is. */
export function sealedResolution(cipher: Cipher, id: Uint8Array, resolution: Resolution): Resolution {
  if (resolution.verdict === "released") return resolution;
  const { completion } = resolution;
  const { content } = completion.outcome;
  if (content === null) return resolution;
  const outcome: StoredOutcome = { ...completion.outcome, content: cipher.seal(id, "outcome", content) };
  return { ...resolution, completion: { ...completion, outcome } };
}

/**
 * Milliseconds until nothing of an unfinished entry can still land: 0 or less: now; `null`: nobody can say. The entry's
 * own time (its last attempt is certainly over) and that of each open intent must both have come.
 */
export function settlesIn(entrySettlesInMs: number | null, intents: readonly Intent[]): number | null {
  let longestMs = entrySettlesInMs;
  for (const { state, settlesInMs } of intents) {
    if (state !== "open") continue;
    longestMs = longestMs === null || settlesInMs === null ? null : Math.max(longestMs, settlesInMs);
  }
  return longestMs;
}
