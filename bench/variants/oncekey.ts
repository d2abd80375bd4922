import type { RequestListener } from "node:http";
import { created, createOncekey, type Oncekey, type Operation } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { idempotent } from "oncekey/node";
import { type Driver, postgresStore } from "oncekey/postgres";
import type pg from "pg";
import type { InvoiceHandler, InvoiceInput } from "../invoice.ts";
import { INPUT, type Invoice } from "../invoice.ts";
import type { OpenVariant, VariantWorld } from "./variant.ts";

/** What may differ between two variants of Oncekey. */
export interface OncekeyChoices {
  /** Its statements as named ones. Default true. */
  readonly named?: boolean;
  /** Claims, look-ups and completions of the process go together. Default: the store's own. */
  readonly groups?: boolean;
}

/** An instance on the variant's pool. */
export type BenchOncekey = Oncekey<pg.PoolClient>;

export const scope = () => ({ tenant: "acme", client: "app" });

/** Creates an instance: nothing but the choices differs from its defaults. */
export function instance({ pool }: VariantWorld, { named = true, groups }: OncekeyChoices = {}): BenchOncekey {
  const open: (pool: pg.Pool, options: { named: boolean }) => Driver<pg.PoolClient> = fromPg;
  const options = { schema: "oncekey", ...(groups === undefined ? {} : { groups }) };
  return createOncekey({ store: postgresStore(open(pool, { named }), options) });
}

/** The handler's answer, as an operation gives it. */
export const createdInvoice = (invoice: Invoice) => created(`/v1/invoices/${invoice.id}`, invoice);

/** Starts the instance and serves the operation over plain `node:http`, and without HTTP. */
export async function served(
  once: BenchOncekey,
  operation: Operation<"transaction"> | Operation<"phases">,
  listener: RequestListener = idempotent(operation, { scope }),
): Promise<OpenVariant> {
  await once.start();
  return {
    listener,
    async call(key) {
      const result = await once.run(operation, { scope: scope(), key, input: { body: INPUT } });
      if (result.kind !== "completed") throw new Error(`A run ended as ${result.kind}.`);
    },
    close: () => once.close({ graceMs: 5_000 }),
  };
}

/** The `transaction` operation. */
export function transactionOf(once: BenchOncekey, handler: InvoiceHandler): Operation<"transaction"> {
  return once.transaction({
    name: "invoices.create",
    version: 1,
    run: async ({ tx, input }) => createdInvoice(await handler.insert(tx, input.body as InvoiceInput)),
  });
}
