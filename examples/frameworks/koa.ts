import { json } from "node:stream/consumers";
import Router from "@koa/router";
import Koa, { type Context } from "koa";
import { idempotent } from "oncekey/koa";
import { openShop, scopeOf, serve, tenantOf } from "./_support.ts";

// node --conditions=oncekey-source --import tsx examples/frameworks/koa.ts

const shop = await openShop();
await shop.once.start();

const app = new Koa();
const router = new Router();
const scope = (ctx: Context) => scopeOf(ctx.get("authorization"));

app.use(async (ctx, next) => {
  if (tenantOf(ctx.get("authorization")) === null) ctx.throw(401, "who are you?");
  await next();
});

// Runs the operation and answers.
router.post("/orders", idempotent(shop.createOrder, { scope }));

// Wraps the middleware that comes after it; a body parser may stand on either side.
router.post("/refunds", idempotent(shop.createRefund, { scope }), async (ctx: Context) => {
  const { order } = (await json(ctx.req)) as { order: string };
  ctx.status = 201;
  ctx.body = await shop.refund(order);
});

router.get("/effects", async (ctx) => {
  ctx.body = await shop.effects();
});

app.use(router.routes());
await serve("koa", shop, app.callback());
