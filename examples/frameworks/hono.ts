import { getRequestListener } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { idempotent } from "oncekey/hono";
import { openShop, scopeOf, serve, tenantOf } from "./_support.ts";

// node --conditions=oncekey-source --import tsx examples/frameworks/hono.ts

const shop = await openShop();
await shop.once.start();

const app = new Hono();
const scope = (c: Context) => scopeOf(c.req.header("authorization"));

app.use(async (c, next) => {
  if (tenantOf(c.req.header("authorization")) === null) return c.json({ error: "who are you?" }, 401);
  return next();
});

// Runs the operation and answers.
app.post("/orders", idempotent(shop.createOrder, { scope }));

// Wraps the handler that comes after it.
app.post("/refunds", idempotent(shop.createRefund, { scope }), async (c) => {
  const { order } = await c.req.json<{ order: string }>();
  return c.json(await shop.refund(order), 201);
});

app.get("/effects", async (c) => c.json(await shop.effects()));

await serve("hono", shop, getRequestListener(app.fetch));
