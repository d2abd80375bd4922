/**
 * A team's own endpoint, as it would stand in its service: Express, an operation, a route. What its tests replace (the
 * store, crash points) comes in from outside; a service hands `postgresStore(fromPg(pool))` over instead.
 */
import { randomUUID } from "node:crypto";
import express, { type Express, type RequestHandler } from "express";
import { created, createOncekey, type OncekeyOptions } from "oncekey";
import { idempotent } from "oncekey/express";
import type { MemoryTransaction } from "oncekey/memory";
import { z } from "zod";

const InvoiceInput = z.strictObject({ amount: z.int().positive() });

/** Starts the endpoint: `POST /invoices` for callers with a bearer token. */
export async function invoicesApp(options: OncekeyOptions<MemoryTransaction>): Promise<Express> {
  const once = createOncekey(options);
  const createInvoice = once.transaction({
    name: "invoices.create",
    version: 1,
    input: { body: InvoiceInput },
    async run({ tx, input }) {
      const invoice = { id: randomUUID(), amount: input.body.amount };
      await tx.insert("invoices", invoice);
      return created(`/invoices/${invoice.id}`, invoice);
    },
  });
  await once.start();
  const app = express();
  const scope = (req: express.Request) => ({ tenant: tenantOf(req), client: null });
  app.post("/invoices", authenticate, idempotent(createInvoice, { scope }));
  return app;
}

const tenantOf = (req: express.Request): string => (req.headers.authorization ?? "").replace("Bearer ", "");

const authenticate: RequestHandler = (req, res, next) => {
  if (tenantOf(req) === "") res.status(401).json({ error: "who are you?" });
  else next();
};
