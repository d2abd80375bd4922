import type { Decision, EntryState, StoredEntry } from "../core/entry.ts";
import { done, type EngineContext, type Turn } from "./context.ts";
import { failureResult, withState } from "./failures.ts";
import { openOutcome, openProvisional } from "./stored-outcome.ts";

/** When to come back where nothing tells better, in milliseconds. */
export const BUSY_RETRY_MS = 1_000;

/** Decisions about an entry that need nobody to run anything. */
export type Decided = Extract<
  Decision,
  { readonly kind: "replay" | "gone" | "mismatch" | "version_unknown" | "busy" | "unknown" }
>;

/** The turn that a decision about the entry means. Raises as {@link openOutcome}. */
export async function decidedTurn(context: EngineContext, entry: StoredEntry, decision: Decided): Promise<Turn> {
  const { id, state } = entry;
  switch (decision.kind) {
    case "replay": {
      const outcome = await openOutcome(context, id, decision.outcome);
      context.observed?.replays(entry.correlation);
      return done(outcome === null ? { kind: "gone", state } : { kind: "replayed", outcome });
    }
    case "gone":
    case "mismatch":
      return done(decision);
    case "version_unknown":
      return done({ kind: "version_unknown", state, retryAfterMs: BUSY_RETRY_MS });
    case "busy":
      return { kind: "wait", retryAfterMs: decision.retryAfterMs };
    case "unknown":
      return done({ ...decision, provisional: await openProvisional(context, id, decision.provisional) });
  }
}

/**
 * The turn that a failure means; raises the ones that mean none, such as what a handler threw. `state`: that of the entry
 * that was seen before it.
 */
export function failedTurn(error: unknown, state: EntryState | null = null): Turn {
  const result = failureResult(error);
  if (result === null) throw error;
  return done(state === null ? result : withState(result, state));
}
