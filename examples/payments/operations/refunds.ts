import type { Request, RequestHandler, Response } from "express";
import { assertOwned, created, currentOrigin, happened, notDone, type Origin } from "oncekey";
import type pg from "pg";
import * as z from "zod";
import { callerOf } from "../auth.ts";
import { parseExact } from "../exact-json.ts";
import { amountMinor, label } from "../input.ts";
import type { Step } from "../lab.ts";
import type { OperationParts, Queryable } from "../payments.ts";
import { sendJson, sendProblem } from "../problem.ts";

const RefundInput = z.strictObject({ charge_id: label, amount_minor: amountMinor });

/** A refund as clients see it. */
export interface Refund {
  readonly id: string;
  readonly status: string;
  readonly charge_id: string;
  readonly amount_minor: bigint;
  readonly created_at: string;
}

/**
 * "Refund a charge": a handler that was there before Oncekey, captured. Its transaction and the stored answer are two
 * commits: killed in between, nobody knows whether the refund was made, and the key says so instead of making another.
 */
export function createRefund({ once, pool, maxDurationMs, version }: OperationParts) {
  return once.capture({
    name: "refunds.create",
    version,
    input: { body: RefundInput },
    maxDurationMs,
    // Asked once nothing of the attempt can still be running: the handler's own table tells what became of it.
    async reconcile(origin) {
      const made = await findRefund(pool, origin);
      return made === null ? notDone() : happened(created(`/v1/refunds/${made.id}`, made));
    },
  });
}

/** What the handler answers when it may not refund. */
type Refusal = { readonly status: number; readonly code: string; readonly title: string };

/** The existing handler: ordinary Express over an ordinary pool. */
export function refundHandler(pool: pg.Pool, step: Step): RequestHandler {
  return async (request: Request, response: Response) => {
    const input = RefundInput.parse(parseExact(String(request.body)));
    const made = await inTransaction(pool, step, async (client) => {
      const refusal = await refusalOf(client, callerOf(request).tenant, input);
      if (refusal !== null) return refusal;
      const refund = await step("refund_insert", () => insertRefund(client, currentOrigin(), input));
      // The one line it gained: a handler that slept past its lease must not commit what was meanwhile settled.
      await assertOwned(client);
      return refund;
    });
    if ("code" in made) return sendProblem(response, made.status, made);
    response.location(`/v1/refunds/${made.id}`);
    sendJson(response, 201, made);
  };
}

async function inTransaction<T>(pool: pg.Pool, step: Step, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    // A process that sleeps in here holds the charge's row lock; the database ends its transaction, not the next caller.
    await client.query("set local idle_in_transaction_session_timeout = '30s'");
    const value = await run(client);
    await step("refund_commit", () => client.query("commit"));
    client.release();
    return value;
  } catch (error) {
    // Closing the connection rolls back, also where it is the connection that broke.
    client.release(true);
    throw error;
  }
}

async function refusalOf(
  db: Queryable,
  tenant: string,
  { charge_id, amount_minor }: z.output<typeof RefundInput>,
): Promise<Refusal | null> {
  // The row lock makes refunds of one charge wait for each other; the sum must be read after it, in a newer snapshot.
  const locked = "select amount_minor, status from charges where tenant = $1 and id = $2 for update";
  const charge = (await db.query(locked, [tenant, charge_id])).rows[0];
  if (charge === undefined) return { status: 404, code: "charge_not_found", title: "There is no such charge" };
  if (charge.status !== "succeeded")
    return { status: 422, code: "charge_not_settled", title: "The charge is not settled" };
  const total = "select coalesce(sum(amount_minor), 0) as refunded from refunds where charge_id = $1";
  const { refunded } = (await db.query(total, [charge_id])).rows[0];
  if (BigInt(refunded) + amount_minor <= BigInt(charge.amount_minor)) return null;
  return { status: 422, code: "refund_exceeds_charge", title: "The refunds would exceed the charge" };
}

const COLUMNS = "id, status, charge_id, amount_minor, created_at";

async function insertRefund(
  db: Queryable,
  { scope, key }: Origin,
  input: z.output<typeof RefundInput>,
): Promise<Refund> {
  const { rows } = await db.query(
    `insert into refunds (id, tenant, client, idempotency_key, charge_id, amount_minor)
     values ('re_' || replace(gen_random_uuid()::text, '-', ''), $1, $2, $3, $4, $5) returning ${COLUMNS}`,
    [scope.tenant, scope.client, key, input.charge_id, input.amount_minor.toString()],
  );
  return refundOf(rows[0]);
}

/** The refund that a key made; the newest, where a key was used again after its retention. */
async function findRefund(db: Queryable, { scope, key }: Origin): Promise<Refund | null> {
  const { rows } = await db.query(
    `select ${COLUMNS} from refunds
     where tenant = $1 and client is not distinct from $2 and idempotency_key = $3 order by seq desc limit 1`,
    [scope.tenant, scope.client, key],
  );
  return rows[0] === undefined ? null : refundOf(rows[0]);
}

/** The tenant's refunds, oldest first; with `id`, only that one. */
export async function listRefunds(db: Queryable, tenant: string, id?: string): Promise<Refund[]> {
  const { rows } = await db.query(
    `select ${COLUMNS} from refunds where tenant = $1 and ($2::text is null or id = $2) order by seq`,
    [tenant, id ?? null],
  );
  return rows.map(refundOf);
}

interface RefundRow extends Omit<Refund, "amount_minor" | "created_at"> {
  readonly amount_minor: string;
  readonly created_at: Date;
}

function refundOf(row: RefundRow): Refund {
  return { ...row, amount_minor: BigInt(row.amount_minor), created_at: row.created_at.toISOString() };
}
