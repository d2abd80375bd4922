import { createHash } from "node:crypto";
import type { ClientBase, Pool } from "pg";

/** A request by the old code's rules: the key as the header spells it, and a hash of the body's bytes. */
export interface OldRequest {
  readonly tenant: string;
  readonly endpoint: string;
  readonly key: string;
  readonly hash: string;
}

/** How a key was found. `claimed`: by this very request, since `lockedAt`. */
export type OldClaim =
  | { readonly kind: "claimed"; readonly lockedAt: string }
  | { readonly kind: "answered"; readonly status: number; readonly body: string }
  | { readonly kind: "locked" }
  | { readonly kind: "reused" };

/** After so long a lock is a dead process's. */
const STALE_LOCK = "60 seconds";

/** The old code's hash: of the bytes, so that a space makes another request. */
export function hashOf(body: Uint8Array): string {
  return createHash("sha256").update(body).digest("hex");
}

// An instant as text: a Date has no microseconds, and the lock is recognised by them.
const CLAIM = `
  INSERT INTO idempotency_keys (tenant, endpoint, key, request_hash, locked_at) VALUES ($1, $2, $3, $4, clock_timestamp())
  ON CONFLICT DO NOTHING RETURNING locked_at::text`;
const TAKE_OVER = `
  UPDATE idempotency_keys SET locked_at = clock_timestamp()
  WHERE tenant = $1 AND endpoint = $2 AND key = $3 AND request_hash = $4
    AND status IS NULL AND locked_at < clock_timestamp() - interval '${STALE_LOCK}'
  RETURNING locked_at::text`;
const LOOK = "SELECT request_hash, status, body FROM idempotency_keys WHERE tenant = $1 AND endpoint = $2 AND key = $3";
const FINISH = `
  UPDATE idempotency_keys SET status = $5, body = $6, locked_at = NULL
  WHERE tenant = $1 AND endpoint = $2 AND key = $3 AND status IS NULL AND locked_at = $4::text::timestamptz`;
const GIVE_BACK = `
  DELETE FROM idempotency_keys
  WHERE tenant = $1 AND endpoint = $2 AND key = $3 AND status IS NULL AND locked_at = $4::text::timestamptz`;

const place = ({ tenant, endpoint, key }: OldRequest) => [tenant, endpoint, key];

/** Claims the key, or tells what there is. The unique index decides between any two, of whatever code. */
export async function claimKey(db: Pool | ClientBase, request: OldRequest): Promise<OldClaim> {
  for (const statement of [CLAIM, TAKE_OVER]) {
    const { rows } = await db.query(statement, [...place(request), request.hash]);
    if (rows[0] !== undefined) return { kind: "claimed", lockedAt: rows[0].locked_at };
  }
  const { rows } = await db.query(LOOK, place(request));
  const row = rows[0];
  // Given back between the statements: as good as locked, for the client comes again.
  if (row === undefined) return { kind: "locked" };
  if (row.request_hash !== request.hash) return { kind: "reused" };
  return row.status === null ? { kind: "locked" } : { kind: "answered", status: row.status, body: row.body };
}

/** Writes the answer. `false`: the lock is no longer this claim's, and nothing that goes with it may be committed. */
export async function answerKey(
  tx: ClientBase,
  request: OldRequest,
  lockedAt: string,
  answer: { readonly status: number; readonly body: string },
): Promise<boolean> {
  const { rowCount } = await tx.query(FINISH, [...place(request), lockedAt, answer.status, answer.body]);
  return rowCount === 1;
}

/** Gives the key back after a failure, so that a retry need not wait for the lock to grow old. */
export async function giveKeyBack(db: Pool | ClientBase, request: OldRequest, lockedAt: string): Promise<void> {
  await db.query(GIVE_BACK, [...place(request), lockedAt]);
}
