import type { EntryState } from "../core/entry.ts";
import { OncekeyError } from "../core/errors.ts";
import { StoreFailure } from "../core/store.ts";
import { LeaseLost } from "./lease.ts";
import type { AnyResult } from "./run-result.ts";

const SOON_MS = 1_000;

/**
 * The result that a failure of the store (or the loss of the lease) means where nothing more can be found out; `null`
 * for anything else, which is the handler's own error. Raises the developer errors that a failure reveals.
 */
export function failureResult(error: unknown): AnyResult | null {
  if (error instanceof LeaseLost) return { kind: "lease_lost", retryAfterMs: SOON_MS };
  if (!(error instanceof StoreFailure)) return null;
  switch (error.kind) {
    case "unavailable":
      return { kind: "store_unavailable", retryAfterMs: SOON_MS };
    case "contention":
    case "conflict":
      return { kind: "contention", retryAfterMs: SOON_MS };
    case "timeout":
      return { kind: "lease_lost", retryAfterMs: SOON_MS };
    case "commit_unknown":
      return { kind: "commit_unknown", retryAfterMs: SOON_MS };
    case "aborted":
      throw new OncekeyError(
        "oncekey_transaction_aborted",
        "The handler caught an SQL error and went on; PostgreSQL had already given the transaction up. Everything was rolled back, nothing is stored. Let the error reach Oncekey, or use a savepoint around the statement.",
        { cause: error },
      );
    case "transaction_lost":
      throw new OncekeyError(
        "oncekey_transaction_lost",
        "The handler ended the transaction it was given (COMMIT or ROLLBACK). What it committed itself is kept, no outcome is stored: a retry runs again. Leave the transaction open; Oncekey commits it.",
        { cause: error },
      );
  }
}

/** A failure of the store that comes after an entry of the key was seen or made: without its state it would say that there is none. */
export function withState(result: AnyResult, state: EntryState): AnyResult {
  return result.kind === "store_unavailable" || result.kind === "contention" ? { ...result, state } : result;
}
