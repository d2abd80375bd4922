/** An API process of the campaign: the example's operations and routes, with sweeper and relay, at times of its own. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createOncekey } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { createRelay, delivered, publisherOf } from "oncekey/outbox";
import { postgresStore } from "oncekey/postgres";
import { createSweeper } from "oncekey/sweeper";
import pg from "pg";
import { createApp } from "../../examples/payments/app.ts";
import { openLab } from "../../examples/payments/lab.ts";
import { createCharge } from "../../examples/payments/operations/charges.ts";
import { createInvoice } from "../../examples/payments/operations/invoices.ts";
import { createRefund } from "../../examples/payments/operations/refunds.ts";
import type { OperationParts, Payments } from "../../examples/payments/payments.ts";
import { createPspClients } from "../../examples/payments/psp-client.ts";
import { readSettings } from "../../examples/payments/settings.ts";
import { API_TIMES, type ApiSettings, type Delivered } from "./settings.ts";

const settings = JSON.parse(process.env.LAB_SETTINGS ?? "{}") as ApiSettings;
const { leaseMs, waitMs, maxDurationMs } = API_TIMES;

function openPool(max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: settings.databaseUrl, max, connectionTimeoutMillis: 3_000 });
  // A failover breaks connections: idle ones, and those that a handler holds between two statements.
  pool.on("error", () => {});
  pool.on("connect", (client) => void client.on("error", () => {}));
  return pool;
}

function openPayments(): Payments {
  const [pool, control] = [openPool(8), openPool(2)];
  const store = postgresStore(fromPg(pool), { control: fromPg(control) });
  const once = createOncekey({ store, leaseMs, waitMs, onError: () => {} });
  const psp = createPspClients(settings.pspUrl);
  const { pspRecover } = settings;
  const parts: OperationParts = { once, pool, psp, pspRecover, version: 1, maxDurationMs, step: (_name, run) => run() };
  const operations = {
    createInvoice: createInvoice(parts),
    createCharge: createCharge(parts),
    createRefund: createRefund(parts),
  };
  return { once, pool, operations, end: async () => void (await Promise.all([pool.end(), control.end()])) };
}

/** Delivered to the campaign, which lists what it got. */
const toCampaign = publisherOf("campaign", async ({ id, topic, payload }) => {
  const told: Delivered = { id, topic, payload };
  await new Promise<void>((done, fail) =>
    process.send?.({ delivered: told }, (error: Error | null) => (error ? fail(error) : done())),
  );
  return delivered();
});

// What the example prints for people is nobody's here: a failover fills it with connections that were lost.
console.error = () => {};
const payments = openPayments();
await payments.once.start();
const stopping = new AbortController();
const sweeping = createSweeper(payments.once, { intervalMs: 500 }).run(stopping.signal);
const relay = createRelay(payments.once, {
  topics: { "invoice.*": toCampaign, "charge.*": toCampaign },
  longestPauseMs: 1_000,
});
const relaying = relay.run(stopping.signal);
const server = createServer(createApp(payments, openLab(readSettings({}))));
server.listen(0, "127.0.0.1", () => {
  process.send?.({ ready: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
// The campaign is gone, however: nobody else would end this process.
process.once("disconnect", () => process.exit(1));
process.once("SIGTERM", async () => {
  server.close();
  server.closeAllConnections();
  stopping.abort();
  await Promise.all([sweeping, relaying]);
  await payments.end();
  process.exit(0);
});
