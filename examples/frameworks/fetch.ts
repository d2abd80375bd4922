import { getRequestListener } from "@hono/node-server";
import { idempotent } from "oncekey/fetch";
import { openShop, scopeOf, serve, tenantOf } from "./_support.ts";

// node --conditions=oncekey-source --import tsx examples/frameworks/fetch.ts

const shop = await openShop();
await shop.once.start();

const scope = (request: Request) => scopeOf(request.headers.get("authorization"));

// Runs the operation and answers.
const orders = idempotent(shop.createOrder, { scope });

// Wraps what is there already. The request it gets is unread.
const refunds = idempotent(shop.createRefund, { scope }, async (request) => {
  const { order } = (await request.json()) as { order: string };
  return Response.json(await shop.refund(order), { status: 201 });
});

async function handle(request: Request): Promise<Response> {
  if (tenantOf(request.headers.get("authorization")) === null) return new Response("who are you?", { status: 401 });
  switch (`${request.method} ${new URL(request.url).pathname}`) {
    case "POST /orders":
      return orders(request);
    case "POST /refunds":
      return refunds(request);
    case "GET /effects":
      return Response.json(await shop.effects());
    default:
      return new Response("not found", { status: 404 });
  }
}

// Whatever serves functions of the Fetch interface does; this is Hono's bridge to Node's own server.
await serve("fetch", shop, getRequestListener(handle));
