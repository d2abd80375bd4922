import { H3, type H3Event, HTTPError, readBody, toNodeHandler, toResponse } from "h3";
import { idempotent } from "oncekey/h3";
import { openShop, scopeOf, serve, tenantOf } from "./_support.ts";

// node --conditions=oncekey-source --import tsx examples/frameworks/h3.ts

const shop = await openShop();
await shop.once.start();

const app = new H3();
const scope = (event: H3Event) => scopeOf(event.req.headers.get("authorization"));

app.use((event) => {
  if (tenantOf(event.req.headers.get("authorization")) === null) throw new HTTPError({ status: 401 });
});

// Runs the operation and answers.
app.post("/orders", idempotent(shop.createOrder, { scope }));

// Wraps an existing handler; h3's own toResponse tells what it makes of the value.
const refundOrder = async (event: H3Event) => {
  const { order } = (await readBody<{ order: string }>(event)) ?? { order: "" };
  event.res.status = 201;
  return shop.refund(order);
};
app.post("/refunds", idempotent(shop.createRefund, { scope, toResponse }, refundOrder));

app.get("/effects", () => shop.effects());

await serve("h3", shop, toNodeHandler(app) as never);
