import type { IncomingMessage, ServerResponse } from "node:http";
import { initTRPC, TRPCError } from "@trpc/server";
import { createHTTPHandler } from "@trpc/server/adapters/standalone";
import { idempotencyErrors, idempotent, idempotentMutation } from "oncekey/trpc";
import type { RpcHost, RpcInput, RpcOperations } from "./rpc-world.ts";

/** What the tests' routers have as their context. */
export interface TrpcContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

const t = initTRPC.context<TrpcContext>().create({ errorFormatter: idempotencyErrors });

/** A procedure whose validation the tests' inputs pass. */
const procedure = t.procedure.input((value: unknown) => value as RpcInput);

function bindingOf({ allowed }: RpcOperations) {
  return {
    scope: ({ ctx }: { ctx: TrpcContext }) => ({ tenant: String(ctx.req.headers["x-tenant"]), client: null }),
    authorize: allowed,
    onReplay: ({ ctx }: { ctx: TrpcContext }) => void ctx.res.setHeader("idempotent-replayed", "true"),
  };
}

function routerOf(operations: RpcOperations) {
  const binding = bindingOf(operations);
  return t.router({
    create: procedure.mutation(idempotentMutation(operations.create, binding)),
    charge: procedure.mutation(idempotentMutation(operations.charge, binding)),
    wrap: procedure.use(idempotent(operations.wrap, binding)).mutation(({ input }) => operations.existing(input)),
  });
}

interface TrpcBody {
  readonly result?: { readonly data: unknown };
  readonly error?: {
    readonly message: string;
    readonly data: {
      readonly code: string;
      readonly httpStatus: number;
      readonly idempotency?: object;
      readonly problem?: { readonly code?: string };
    };
  };
}

/** tRPC's standalone server, without a transformer: what is sent is JSON. */
export const trpcHost: RpcHost = {
  name: "trpc",
  listener: (operations) =>
    createHTTPHandler({ router: routerOf(operations), createContext: ({ req, res }) => ({ req, res }) }),
  async call(url, { mutation, key, tenant = "acme", input = {}, signal = null }) {
    const headers: Record<string, string> = { "content-type": "application/json", "x-tenant": tenant };
    if (key !== undefined) headers["idempotency-key"] = key;
    const answer = await fetch(`${url}/${mutation}`, { method: "POST", headers, body: JSON.stringify(input), signal });
    const { result, error } = (await answer.json()) as TrpcBody;
    if (error === undefined) {
      return { kind: "value", value: result?.data, replayed: answer.headers.has("idempotent-replayed") };
    }
    const { idempotency = {}, problem, code } = error.data;
    const own = { code: problem?.code ?? code };
    return { kind: "error", status: answer.status, message: error.message, ...own, ...idempotency };
  },
  error(kind, message) {
    const codes = { conflict: "CONFLICT", unauthorized: "UNAUTHORIZED", "gone-silent": "TIMEOUT" } as const;
    return new TRPCError({ code: codes[kind], message });
  },
};
