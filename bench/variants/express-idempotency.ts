import express, { type Request, type RequestHandler } from "express";
import type { InvoiceInput } from "../invoice.ts";
import { inTransaction } from "./in-transaction.ts";
import { redisUrl, type Variant } from "./variant.ts";

interface Middleware {
  idempotency(options: { readonly dataAdapter: unknown }): RequestHandler;
  getSharedIdempotencyService(): { isHit(request: Request): boolean };
}

interface RedisAdapter {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
}

/** express-idempotency with its Redis adapter around the plain handler, as its documents say to use them. */
export const expressIdempotency: Variant = {
  name: "express-idempotency",
  title: "express-idempotency with Redis, on Express",
  async open({ pool, handler, load, redisPort }) {
    const { idempotency, getSharedIdempotencyService }: Middleware = load("express-idempotency");
    const { default: Adapter } = load("express-idempotency-redis-adapter") as {
      readonly default: new (options: object) => RedisAdapter;
    };
    const adapter = new Adapter({ connectionConfig: { url: redisUrl(redisPort) } });
    await adapter.connect();
    const app = express().disable("x-powered-by").disable("etag");
    app.post("/v1/invoices", express.json(), idempotency({ dataAdapter: adapter }), async (request, response) => {
      // It has answered a replay already, and calls the handler all the same.
      if (getSharedIdempotencyService().isHit(request)) return;
      const invoice = await inTransaction(pool, (client) => handler.insert(client, request.body as InvoiceInput));
      response.status(201).json(invoice);
    });
    return { listener: app, close: () => adapter.disconnect() };
  },
};
