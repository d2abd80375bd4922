import { decide, type StoredEntry } from "../core/entry.ts";
import { OncekeyError } from "../core/errors.ts";
import type { EngineContext } from "./context.ts";
import { failureResult } from "./failures.ts";
import type { Operation } from "./operation.ts";

/** Where a key stands. `none`: nothing is known of it; `unknown`: nobody knows yet what its request did. */
export type KeyState = "none" | "in_progress" | "succeeded" | "failed" | "unknown";

/** The state of an identity. Changes nothing. Raises `idempotency_store_unavailable`, which comes back sooner than it helps. */
export async function keyState(context: EngineContext, operation: Operation, id: Uint8Array): Promise<KeyState> {
  try {
    const entry = await context.store.read(id);
    if (context.sharing.owner(id) !== undefined) return "in_progress";
    const state = stateOf(operation, entry);
    return state === "none" && operation.runKind === "transaction" ? await runningState(context, operation, id) : state;
  } catch (error) {
    if (failureResult(error) === null) throw error;
    throw new OncekeyError(
      "idempotency_store_unavailable",
      "The idempotency store cannot be reached. Nothing was changed. Ask again with the same key.",
      { cause: error, retryAfterMs: 1_000 },
    );
  }
}

/**
 * A `transaction` run has no row before its commit, only its locks, in whatever process it runs. Who sees none looks again:
 * it may have committed since the first look.
 */
async function runningState({ store }: EngineContext, operation: Operation, id: Uint8Array): Promise<KeyState> {
  return (await store.running(id)) ? "in_progress" : stateOf(operation, await store.read(id));
}

function stateOf(operation: Operation, entry: StoredEntry | null): KeyState {
  const decision = decide(entry, "equal", operation);
  if (entry === null || decision.kind === "absent") return "none";
  // Its owner is gone: what it did is as little known as after it is marked.
  if (decision.kind === "abandoned") return "unknown";
  return entry.state === "needs_recovery" || entry.state === "released" ? "unknown" : entry.state;
}
