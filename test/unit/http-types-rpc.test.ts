import type { IncomingMessage } from "node:http";
import { initTRPC } from "@trpc/server";
import type { GraphQLFieldResolver, GraphQLResolveInfo } from "graphql";
import { createSchema, type YogaInitialContext } from "graphql-yoga";
import { createOncekey, ok } from "oncekey";
import { type GraphqlInfo, idempotentResolver } from "oncekey/graphql";
import { memoryStore } from "oncekey/memory";
import { idempotencyErrors, idempotent, idempotentMutation, type ValueTransformer } from "oncekey/trpc";
import { describe, expect, expectTypeOf, it } from "vitest";

const once = createOncekey({ store: memoryStore() });
const write = once.transaction({ name: "types.write", version: 1, run: async () => ok({}) });
const wrap = once.capture({ name: "types.wrap", version: 1 });
const scope = () => ({ tenant: "acme", client: null });

interface Context {
  readonly req: IncomingMessage;
  readonly user: string;
}

const t = initTRPC.context<Context>().create({ errorFormatter: idempotencyErrors });
const input = t.procedure.input((value: unknown) => value as { readonly n: number });
const scopeOfContext = ({ ctx }: { readonly ctx: Context }) => ({ tenant: ctx.user, client: null });

describe("tRPC types", () => {
  it("fit a middleware, which changes neither the context nor the input of what follows", () => {
    const procedure = input.use(idempotent(wrap, { scope: scopeOfContext })).mutation(({ ctx, input: given }) => {
      expectTypeOf(ctx).toEqualTypeOf<{ req: IncomingMessage; user: string }>();
      expectTypeOf(given).toEqualTypeOf<{ readonly n: number }>();
      return given.n;
    });
    expectTypeOf<(typeof procedure)["_def"]["$types"]["output"]>().toEqualTypeOf<number>();
    expect(t.router({ a: procedure, b: t.procedure.use(idempotent(wrap, { scope })).mutation(() => 1) })).toBeDefined();
  });

  it("fit a mutation, whose result is what read says", () => {
    const read = (answer: unknown) => ({ id: String(answer) });
    const a = input.mutation(idempotentMutation(write, { scope: scopeOfContext, read }));
    expectTypeOf<(typeof a)["_def"]["$types"]["output"]>().toEqualTypeOf<{ id: string }>();
    const b = input.mutation(idempotentMutation(write, { scope: ({ ctx }) => ({ tenant: ctx.user, client: null }) }));
    expectTypeOf<(typeof b)["_def"]["$types"]["output"]>().toBeUnknown();
    expectTypeOf<(typeof b)["_def"]["$types"]["input"]>().toEqualTypeOf<{ readonly n: number }>();
    expect(t.router({ a, b })).toBeDefined();
  });

  it("refuse the wrong run kind", () => {
    // @ts-expect-error a transaction runs its own code: there is nothing to wrap.
    expect(() => idempotent(write, { scope })).toBeTypeOf("function");
    // @ts-expect-error a capture has no code of its own.
    expect(() => idempotentMutation(wrap, { scope })).toBeTypeOf("function");
  });

  it("tell what errors carry", () => {
    const router = t.router({ a: t.procedure.mutation(() => 1) });
    type Data = (typeof router)["_def"]["_config"]["$types"]["errorShape"]["data"];
    expectTypeOf<Data["code"]>().toBeString();
    expectTypeOf<NonNullable<Data["idempotency"]>["retry"]>().toEqualTypeOf<"same_key" | "new_key" | "never">();
    expect(router).toBeDefined();
  });

  it("take tRPC's own transformers", () => {
    expectTypeOf(t._config.transformer.output).toExtend<ValueTransformer>();
    expect(t._config.transformer).toBeDefined();
  });
});

describe("GraphQL types", () => {
  const typeDefs = "type Query { a: String } type Mutation { pay(item: String, idempotencyKey: String): String }";

  it("fit graphql-js and Yoga's resolvers", () => {
    expectTypeOf<GraphQLResolveInfo>().toExtend<GraphqlInfo>();
    const resolver: GraphQLFieldResolver<unknown, Context, { item?: string }> = idempotentResolver(write, {
      scope: ({ context, args }) => {
        expectTypeOf(args).toEqualTypeOf<{ item?: string }>();
        return { tenant: context.user, client: null };
      },
    });
    const existing: GraphQLFieldResolver<unknown, Context, { item?: string }> = (_, { item }) => item;
    const wrapped: GraphQLFieldResolver<unknown, Context, { item?: string }> = idempotentResolver(
      wrap,
      { scope: ({ context }) => ({ tenant: context.user, client: null }) },
      existing,
    );
    const schema = createSchema<YogaInitialContext & Context>({
      typeDefs,
      resolvers: { Mutation: { pay: wrapped }, Query: { a: () => String(resolver) } },
    });
    expect(schema).toBeDefined();
  });

  it("want the existing resolver for a capture, and none for the others", () => {
    // @ts-expect-error a capture needs the resolver it wraps.
    expect(() => idempotentResolver(wrap, { scope })).toThrow();
    // @ts-expect-error a transaction runs its own code.
    expect(() => idempotentResolver(write, { scope }, () => 1)).toThrow();
  });
});
