import { created, type Origin } from "oncekey";
import * as z from "zod";
import { parseExact, writeExact } from "../exact-json.ts";
import { amountMinor, currency, label } from "../input.ts";
import type { OperationParts, Queryable } from "../payments.ts";

const InvoiceInput = z.strictObject({
  customer_id: label,
  amount_minor: amountMinor,
  currency,
  metadata: z.record(z.string(), z.unknown()).optional(),
});

/** An invoice as clients see it. */
export interface Invoice {
  readonly id: string;
  readonly status: string;
  readonly customer_id: string;
  readonly amount_minor: bigint;
  readonly currency: string;
  readonly metadata: unknown;
  readonly created_at: string;
}

/**
 * "Create an invoice": one commit. The invoice, the outbox message and the stored answer are the same transaction, so
 * that they exist together or not at all, whenever the process dies.
 *
 * Its `reference` makes that last longer than the key: a retry that comes after the entry was purged runs anew, and finds
 * the invoice that the first one made.
 */
export function createInvoice({ once, step, maxDurationMs, version }: OperationParts) {
  return once.transaction({
    name: "invoices.create",
    version,
    input: { body: InvoiceInput },
    maxDurationMs,
    async run({ tx, input, send, reference, ...origin }) {
      const made = await step("invoice_insert", () => insertInvoice(tx, origin, reference, input.body));
      // Announced when it was made; whoever was told once is not told again.
      if (made !== null) await send("invoice.created", { id: made.id });
      const invoice = made ?? (await invoiceByReference(tx, origin.scope.tenant, reference));
      return created(`/v1/invoices/${invoice.id}`, invoice);
    },
  });
}

const COLUMNS = "id, status, customer_id, amount_minor, currency, metadata::text as metadata, created_at";

/** The new invoice; `null` where the same request has made it before. */
async function insertInvoice(
  db: Queryable,
  { scope, key }: Origin,
  reference: string,
  input: z.output<typeof InvoiceInput>,
): Promise<Invoice | null> {
  const { rows } = await db.query(
    `insert into invoices
       (id, tenant, client, idempotency_key, reference, customer_id, amount_minor, currency, metadata)
     values ('inv_' || replace(gen_random_uuid()::text, '-', ''), $1, $2, $3, $4, $5, $6, $7, $8)
     on conflict (reference) do nothing
     returning ${COLUMNS}`,
    [
      scope.tenant,
      scope.client,
      key,
      reference,
      input.customer_id,
      input.amount_minor.toString(),
      input.currency,
      input.metadata === undefined ? null : writeExact(input.metadata),
    ],
  );
  return rows[0] === undefined ? null : invoiceOf(rows[0]);
}

/** By the tenant too: a look-up that trusts an identifier alone is how one customer gets to see another's rows. */
async function invoiceByReference(db: Queryable, tenant: string, reference: string): Promise<Invoice> {
  const { rows } = await db.query(`select ${COLUMNS} from invoices where reference = $1 and tenant = $2`, [
    reference,
    tenant,
  ]);
  if (rows[0] === undefined) throw new Error("The reference belongs to no invoice of this tenant.");
  return invoiceOf(rows[0]);
}

/** The tenant's invoices, oldest first; with `id`, only that one. */
export async function listInvoices(db: Queryable, tenant: string, id?: string): Promise<Invoice[]> {
  const { rows } = await db.query(
    `select ${COLUMNS} from invoices where tenant = $1 and ($2::text is null or id = $2) order by seq`,
    [tenant, id ?? null],
  );
  return rows.map(invoiceOf);
}

interface InvoiceRow extends Omit<Invoice, "amount_minor" | "metadata" | "created_at"> {
  readonly amount_minor: string;
  readonly metadata: string | null;
  readonly created_at: Date;
}

function invoiceOf(row: InvoiceRow): Invoice {
  return {
    ...row,
    amount_minor: BigInt(row.amount_minor),
    metadata: row.metadata === null ? null : parseExact(row.metadata),
    created_at: row.created_at.toISOString(),
  };
}
