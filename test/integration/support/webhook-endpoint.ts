import { createOncekey } from "oncekey";
import { type Driver, postgresStore } from "oncekey/postgres";
import { createWebhook, standardWebhooks, type Webhook } from "oncekey/webhooks";
import type pg from "pg";

/** The tables of the business. */
export const INVOICE_TABLES = `
  CREATE TABLE effect (tenant text, event text, pid int);
  CREATE TABLE invoice (id text PRIMARY KEY, status text NOT NULL)`;

/** Two secrets of the tenant acme (a rotation is under way), one of globex. */
export const SECRETS = {
  acme: ["whsec_YWNtZS1vbmUtYWNtZS1vbmUtYWNtZQ==", "whsec_YWNtZS10d28tYWNtZS10d28tYWNtZQ=="],
  globex: ["whsec_Z2xvYmV4LW9uZS1nbG9iZXgtb25l"],
} as const;

interface InvoiceEvent {
  readonly account?: string;
  readonly data?: { readonly id: string; readonly status: string; readonly version: number };
}

/** An endpoint that writes an effect for each event, and keeps an invoice's newest status. */
export async function invoiceWebhook(
  driver: Driver<pg.PoolClient>,
  inHandler: () => Promise<void> = async () => {},
): Promise<Webhook> {
  const once = createOncekey({ store: postgresStore(driver), onError: () => {}, waitMs: 20_000 });
  await once.start();
  return createWebhook(once, {
    source: "billing",
    scheme: standardWebhooks(),
    secrets: (tenant) => (tenant in SECRETS ? SECRETS[tenant as keyof typeof SECRETS] : null),
    belongsTo: ({ payload }, tenant) => (payload as InvoiceEvent).account === tenant,
    async handler({ tx, event, payload, tenant, ifNewer }) {
      await tx.query("INSERT INTO effect (tenant, event, pid) VALUES ($1, $2, $3)", [tenant, event.id, process.pid]);
      await inHandler();
      const { data } = payload as InvoiceEvent;
      if (data === undefined) return;
      await ifNewer(`invoice:${data.id}`, data.version, async () => {
        const upsert = "INSERT INTO invoice VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET status = excluded.status";
        await tx.query(upsert, [data.id, data.status]);
      });
    },
  });
}
