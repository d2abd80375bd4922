import type { IncomingMessage, ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { idempotent } from "oncekey/node";
import { openShop, scopeOf, serve, tenantOf } from "./_support.ts";

// node --conditions=oncekey-source --import tsx examples/frameworks/node.ts

const shop = await openShop();
await shop.once.start();

const scope = (req: IncomingMessage) => scopeOf(req.headers.authorization);

// Runs the operation and answers.
const orders = idempotent(shop.createOrder, { scope });

// Wraps what is there already. The body's stream is as if nobody had read it.
const refunds = idempotent(shop.createRefund, { scope }, async (req, res) => {
  const { order } = (await json(req)) as { order: string };
  sendJson(res, 201, await shop.refund(order));
});

await serve("node", shop, async (req, res) => {
  if (tenantOf(req.headers.authorization) === null) return sendJson(res, 401, { error: "who are you?" });
  switch (`${req.method} ${req.url}`) {
    case "POST /orders":
      return orders(req, res);
    case "POST /refunds":
      return refunds(req, res);
    case "GET /effects":
      return sendJson(res, 200, await shop.effects());
    default:
      return sendJson(res, 404, { error: "not found" });
  }
});

function sendJson(res: ServerResponse, status: number, value: unknown): void {
  res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}
