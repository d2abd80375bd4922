import { type FastifyRequest, fastify } from "fastify";
import { idempotent } from "oncekey/fastify";
import { openShop, port, ready, scopeOf, tenantOf } from "./_support.ts";

// node --conditions=oncekey-source --import tsx examples/frameworks/fastify.ts

const shop = await openShop();
await shop.once.start();

const app = fastify();
const scope = (request: FastifyRequest) => scopeOf(request.headers.authorization);

app.addHook("onRequest", async (request, reply) => {
  if (tenantOf(request.headers.authorization) === null) await reply.code(401).send({ error: "who are you?" });
});

// Runs the operation and answers.
app.post("/orders", idempotent(shop.createOrder, { scope }));

// Wraps the route's handler.
app.post("/refunds", idempotent(shop.createRefund, { scope }), async (request, reply) => {
  const { order } = request.body as { order: string };
  reply.code(201);
  return shop.refund(order);
});

app.get("/effects", () => shop.effects());

const url = await app.listen({ port, host: "127.0.0.1" });
ready("fastify", shop, url, () => app.close());
