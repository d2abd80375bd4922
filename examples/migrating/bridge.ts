import { AsyncLocalStorage } from "node:async_hooks";
import type { Context, Next } from "hono";
import {
  OncekeyError,
  type OperationResponse,
  type Rejection,
  type RejectOptions,
  respond,
  type TransactionStep,
} from "oncekey";
import type { PoolClient } from "pg";
import { answerKey, claimKey, hashOf, type OldClaim } from "./old-keys.ts";

// What stands between the two tables while old processes answer beside new ones. Taken out, nothing of it stays: the
// operation, its name and its entries are the same with it and without.

/** What a `transaction` operation runs. */
export type Run<Input> = (step: TransactionStep<PoolClient, Input>) => Promise<OperationResponse | Rejection>;

const JSON_TYPE = { "content-type": "application/json" };

/** The request as the old code sees it; the operation gets neither the bytes nor the header. */
const asOldCodeSeesIt = new AsyncLocalStorage<{ readonly key: string; readonly hash: string }>();

/** Goes before `idempotent()`: keeps the header's spelling, quotes included, and hashes the bytes. */
export async function rememberForOldCode(c: Context, next: Next): Promise<void> {
  const hash = hashOf(new Uint8Array(await c.req.arrayBuffer()));
  await asOldCodeSeesIt.run({ key: c.req.header("idempotency-key") ?? "", hash }, next);
}

/**
 * A run that also claims the old row, in its own transaction, and answers from that row where the old code was first. An
 * old process that comes at the same time waits in its INSERT for this transaction's end, and then finds the answer.
 */
export function bridged<Input>(endpoint: string, run: Run<Input>): Run<Input> {
  return async (step) => {
    const seen = asOldCodeSeesIt.getStore();
    if (seen === undefined) throw new Error("Mount rememberForOldCode before idempotent(). Nothing was run.");
    const request = { tenant: step.scope.tenant, endpoint, ...seen };
    const claim = await claimKey(step.tx, request);
    if (claim.kind !== "claimed") return adopted(claim);
    await step.tx.query("SAVEPOINT before_work");
    const made = await run(step);
    const { status, body } = made.kind === "rejection" ? made.response : made;
    // A rejection takes its rows back. Not the old row with them, or an old process would decide anew.
    if (made.kind === "rejection" && !made.keepRows) await step.tx.query("ROLLBACK TO SAVEPOINT before_work");
    const answer = { status, body: new TextDecoder().decode(body) };
    if (!(await answerKey(step.tx, request, claim.lockedAt, answer))) throw locked();
    return made.kind === "rejection" ? { ...made, keepRows: true } : made;
  };
}

/** The old code's answer as this run's own, byte for byte; a throw stores nothing, so that the key stays as it is. */
function adopted(claim: Exclude<OldClaim, { readonly kind: "claimed" }>): OperationResponse | Rejection {
  if (claim.kind === "locked") throw locked();
  if (claim.kind === "reused") {
    throw new OncekeyError("idempotency_payload_mismatch", "The old code had this key with another body.");
  }
  const { status, body } = claim;
  return status < 400 ? respond(status, body, JSON_TYPE) : refuse(status, body, { keepRows: true });
}

function locked(): OncekeyError {
  const says = "The old code works on this key, or died over it. Nothing was run. Come again with the same key.";
  return new OncekeyError("idempotency_in_progress", says, { retryAfterMs: 1_000 });
}

/** A refusal in bytes of its own: `reject()` writes a problem body, and the old table has no column for a content type. */
export function refuse(status: number, body: string, { keepRows = false }: RejectOptions = {}): Rejection {
  return { kind: "rejection", keepRows, response: respond(status, body, JSON_TYPE) };
}
