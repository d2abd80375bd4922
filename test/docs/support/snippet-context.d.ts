// What the snippets of the documentation may use without declaring it.
import type { Express, RequestHandler } from "express";
import type { Oncekey, Operation, Scope } from "oncekey";
import type { Pool, PoolClient } from "pg";
import type { ZodType } from "zod";

declare global {
  type Invoice = { readonly id: string; readonly amountMinor: bigint };
  type Charge = { readonly id: string; readonly amountMinor: bigint };
  type Authorization = { readonly id: string; readonly status: string };

  const app: Express;
  const pool: Pool;
  const once: Oncekey<PoolClient>;
  const authenticate: RequestHandler;
  const existingHandler: RequestHandler;
  const callerOf: (request: unknown) => Scope;

  const InvoiceInput: ZodType<{ readonly customer: string; readonly amountMinor: bigint }>;
  const ChargeInput: ZodType<{ readonly amountMinor: bigint; readonly source: string }>;
  const createInvoice: Operation<"transaction">;
  const input: { readonly body: unknown };

  function overLimit(tx: PoolClient, tenant: string): Promise<boolean>;
  function insertInvoice(tx: PoolClient, tenant: string, input: { readonly customer: string }): Promise<Invoice>;
  function insertCharge(tx: PoolClient, tenant: string, input: { readonly source: string }): Promise<Charge>;
  function settleCharge(tx: PoolClient, id: string, authorization: Authorization): Promise<void>;
  function findRefund(id: string): Promise<{ readonly id: string } | null>;

  const psp: {
    authorize(
      request: { readonly amountMinor: bigint; readonly source: string },
      options: { readonly idempotencyKey: string; readonly signal: AbortSignal },
    ): Promise<Authorization>;
  };
}
