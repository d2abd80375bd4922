import { randomUUID } from "node:crypto";
import type { PoolClient } from "pg";
import * as z from "zod";

/** What a payment is asked with. */
export const PaymentInput = z.strictObject({ reference: z.string().min(1), amount_minor: z.int().positive() });

/** What was decided, in the words that the API has always used. */
export interface Decided {
  readonly status: 201 | 402;
  readonly body: string;
}

/**
 * The business, the same in the old code and in the new: there is no idempotency in it. Run twice it pays twice, under two
 * ids. All that it writes goes through `tx`.
 */
export async function pay(tx: PoolClient, tenant: string, input: z.output<typeof PaymentInput>): Promise<Decided> {
  const { reference, amount_minor } = input;
  const { rowCount } = await tx.query(
    "UPDATE accounts SET balance_minor = balance_minor - $2 WHERE tenant = $1 AND balance_minor >= $2",
    [tenant, amount_minor],
  );
  if (rowCount === 0) {
    const { rows } = await tx.query("SELECT balance_minor FROM accounts WHERE tenant = $1", [tenant]);
    const balance = Number(rows[0]?.balance_minor ?? 0);
    return { status: 402, body: JSON.stringify({ error: "insufficient_funds", balance_minor: balance }) };
  }
  const id = `pay_${randomUUID()}`;
  await tx.query("INSERT INTO payments VALUES ($1, $2, $3, $4)", [id, tenant, reference, amount_minor]);
  return { status: 201, body: JSON.stringify({ id, reference, amount_minor }) };
}
