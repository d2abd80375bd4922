import type { EntryState } from "../core/entry.ts";
import { type AnyOutcome, type Outcome, type OutcomeBody, takeBytes } from "../core/outcome.ts";

/**
 * What a run gave. `completed` and `replayed` carry the outcome; every other kind says why there is none, and (where it
 * makes sense to come back with the same key) after how long. A throw of the handler is not a result: it is raised.
 */
export type RunResult<Body extends OutcomeBody = Uint8Array> =
  /** This call carried the operation out. The outcome here has all the handler's headers; only the allowed ones are stored. */
  | { readonly kind: "completed"; readonly outcome: Outcome<Body> }
  /** An earlier or concurrent call did; this is its outcome, byte for byte. */
  | { readonly kind: "replayed"; readonly outcome: Outcome<Body> }
  /** The key belongs to another request. Nothing was run or changed. */
  | { readonly kind: "mismatch"; readonly state: EntryState }
  /** The first request still runs (or runs again after a crash). */
  | { readonly kind: "busy"; readonly retryAfterMs: number }
  /** Nobody knows yet what the first request did. `provisional`: the 5xx it answered, where one was kept. */
  | {
      readonly kind: "unknown";
      readonly state: EntryState;
      readonly reason: string;
      readonly provisional: Outcome<Body> | null;
      readonly retryAfterMs: number;
    }
  /** Carried out; the answer is no longer kept. */
  | { readonly kind: "gone"; readonly state: EntryState }
  /** The request says that it was first sent before the retention of anything kept now: it may have been carried out. */
  | { readonly kind: "too_late" }
  /** The attempt lost its lease or its time; another one may go on. */
  | { readonly kind: "lease_lost"; readonly retryAfterMs: number }
  /** COMMIT was sent, its answer never came. */
  | { readonly kind: "commit_unknown"; readonly retryAfterMs: number }
  /** Serialisation failures or deadlocks outlasted the retries; rolled back. `state`: where the key has an entry all the same. */
  | { readonly kind: "contention"; readonly state?: EntryState; readonly retryAfterMs: number }
  /** A newer version of the service wrote the entry. */
  | { readonly kind: "version_unknown"; readonly state: EntryState; readonly retryAfterMs: number }
  /**
   * The store cannot be reached. What was committed before is kept, an open transaction was rolled back. `state`: where an
   * entry of the key was seen or made before that.
   */
  | { readonly kind: "store_unavailable"; readonly state?: EntryState; readonly retryAfterMs: number }
  /** A captured handler answered "not begun" (such as 429): its answer was sent, nothing is stored, the key is free. */
  | { readonly kind: "not_begun"; readonly outcome: Outcome<Body> }
  /** A captured handler answered 5xx: nobody knows what it did. Its answer was kept, as provisional. */
  | { readonly kind: "provisional"; readonly outcome: Outcome<Body> }
  /** The store was down and the operation says `onStoreDown: "run"`: the handler ran without any protection. */
  | { readonly kind: "unprotected"; readonly outcome: Outcome<Body> };

/** What the engine gives to bindings, which can send long bodies. */
export type AnyResult = RunResult<OutcomeBody>;

/** The result with its body in memory; a long one is read and let go of. */
export async function inMemory(result: AnyResult): Promise<RunResult> {
  if ("outcome" in result) return { ...result, outcome: await read(result.outcome) };
  if (result.kind !== "unknown") return result;
  return { ...result, provisional: result.provisional === null ? null : await read(result.provisional) };
}

async function read(outcome: AnyOutcome): Promise<Outcome> {
  return { ...outcome, body: await takeBytes(outcome.body) };
}
