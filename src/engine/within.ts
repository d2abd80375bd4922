import { decide, type StoredEntry } from "../core/entry.ts";
import { OncekeyError } from "../core/errors.ts";
import { matchRequest } from "../core/fingerprint.ts";
import type { OpenedTransaction } from "../core/opened-transaction.ts";
import type { Store } from "../core/store.ts";
import { done, type EngineContext, type Turn } from "./context.ts";
import { BUSY_RETRY_MS, decidedTurn, failedTurn } from "./decided-turn.ts";
import type { Operation } from "./operation.ts";
import type { OperationRequest } from "./request.ts";
import type { AnyResult } from "./run-result.ts";
import { runTransaction } from "./transaction.ts";

/** A duplicate that ends lets go of its two locks one after the other, and for an instant looks like another payload. */
const MOST_ROUNDS = 4;

/**
 * Runs a `transaction` operation once for its identity, in a transaction that the caller opened. Never waits, since it
 * holds the caller's connection, and uses no other one. Nobody in this process shares its result: until the caller commits
 * there is none, and the locks that its transaction keeps say so. Raises `oncekey_transaction_unusable`, and what the
 * handler threw, with all undone that the operation did.
 */
export async function executeWithin(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
  opened: OpenedTransaction<unknown>,
): Promise<AnyResult> {
  checkKind(operation);
  const inside = contextWithin(context, opened);
  let turn: Turn = { kind: "suspect" };
  for (let round = 0; round < MOST_ROUNDS; round++) {
    turn = await takeTurn(inside, operation, request, turn).catch(failedTurn);
    if (turn.kind === "done") return turn.result;
    if (turn.kind === "wait") return { kind: "busy", retryAfterMs: turn.retryAfterMs };
  }
  if (turn.kind === "suspect") return { kind: "mismatch", state: "in_progress" };
  return { kind: "contention", retryAfterMs: BUSY_RETRY_MS };
}

function checkKind({ runKind, name }: Operation): void {
  if (runKind === "transaction") return;
  throw new OncekeyError(
    "oncekey_transaction_unusable",
    `Operation ${name} is of kind ${runKind}, which commits more than once. Nothing was run. Give fromTransaction() to transaction operations only.`,
  );
}

/** The context with the caller's transaction in the place of the store's own. */
function contextWithin(context: EngineContext, { tx }: OpenedTransaction<unknown>): EngineContext {
  const { store } = context;
  const { read, transaction } = store.within(tx);
  const within: Store<unknown> = Object.create(store, {
    // A body must have ended before the caller's transaction may go on: none is given up.
    traits: { value: { ...store.traits, abandons: false } },
    read: { value: read },
    transaction: { value: transaction },
  });
  return { ...context, store: within, point: async () => {} };
}

/** One look at the entry and what follows from it. `last`: what the turn before gave. */
async function takeTurn(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
  last: Turn,
): Promise<Turn> {
  const entry = await context.store.read(request.identity.id);
  const match = entry === null ? "equal" : await matchRequest(entry, request.proof);
  const decision = decide(entry, match, operation);
  switch (decision.kind) {
    case "absent":
      // Somebody finished, and this transaction's snapshot is too old to see it (REPEATABLE READ): only a new one can.
      if (last.kind === "again" && entry === null) return done({ kind: "contention", retryAfterMs: BUSY_RETRY_MS });
      return runTransaction(context, operation, request, (_, run) => run());
    case "resume":
    case "abandoned":
      // An entry that code of another kind left: not for a transaction to take over.
      return { kind: "wait", retryAfterMs: BUSY_RETRY_MS };
    default:
      return decidedTurn(context, entry as StoredEntry, decision);
  }
}
