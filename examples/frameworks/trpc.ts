/** tRPC 11: a mutation that runs an operation, and a middleware around an existing one. */
import type { IncomingMessage } from "node:http";
import { initTRPC, TRPCError } from "@trpc/server";
import { createHTTPHandler } from "@trpc/server/adapters/standalone";
import { idempotencyErrors, idempotent, idempotentMutation } from "oncekey/trpc";
import { type Order, openShop, scopeOf, serve, tenantOf } from "./_support.ts";

interface Context {
  readonly req: IncomingMessage;
}

const shop = await openShop();
const t = initTRPC.context<Context>().create({ errorFormatter: idempotencyErrors });

const authenticated = t.procedure.use(({ ctx, next }) => {
  if (tenantOf(ctx.req.headers.authorization) === null) throw new TRPCError({ code: "UNAUTHORIZED" });
  return next();
});
const scope = ({ ctx }: { readonly ctx: Context }) => scopeOf(ctx.req.headers.authorization);

function textMember(name: string) {
  return (value: unknown): Record<string, string> => {
    const member = (value as Record<string, unknown> | undefined)?.[name];
    if (typeof member !== "string") throw new Error(`${name} must be text`);
    return { [name]: member };
  };
}

const router = t.router({
  createOrder: authenticated
    .input(textMember("item"))
    .mutation(idempotentMutation(shop.createOrder, { scope, read: (answer) => answer as Order })),
  // After input(): what validation refuses is not stored, and may be corrected under the same key.
  createRefund: authenticated
    .input(textMember("order"))
    .use(idempotent(shop.createRefund, { scope }))
    .mutation(({ input }) => shop.refund(String(input.order))),
  effects: t.procedure.query(() => shop.effects()),
});

await shop.once.start();
await serve("trpc", shop, createHTTPHandler({ router, createContext: ({ req }) => ({ req }) }));
