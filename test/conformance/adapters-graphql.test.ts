import { buildSchema, GraphQLError, type GraphQLObjectType, GraphQLScalarType, graphql } from "graphql";
import { createOncekey, ok, reject } from "oncekey";
import { idempotentDirective, idempotentResolver } from "oncekey/graphql";
import { memoryStore } from "oncekey/memory";
import { describe, expect, it, vi } from "vitest";

const typeDefs = `
  ${idempotentDirective}
  scalar Any
  type Order { item: String, total: Int, extra: Any }
  input OrderInput { item: String, note: String }
  type Query { peek: Order }
  type Mutation {
    order(item: String, idempotencyKey: String): Order
    other(item: String, idempotencyKey: ID): Order
    nested(input: OrderInput): Order
  }
`;

type Existing = (source: unknown, args: { readonly item?: string }) => unknown;

function captured() {
  const once = createOncekey({ store: memoryStore(), onError: () => {} });
  const reconcile = async () => ({ kind: "unknown", why: "not asked" }) as const;
  return { once, wrap: once.capture({ name: "order", version: 1, reconcile }) };
}

async function world(existing: Existing = (_, { item }) => ({ item, total: 7 }), options: object = {}) {
  const { once, wrap } = captured();
  const run = once.transaction({
    name: "nested",
    version: 1,
    async run({ input: { body } }) {
      const { item, ...rest } = body as { item: string };
      return item === "none" ? reject(404, { detail: "No such item", hint: 1 }) : ok({ item, extra: rest });
    },
  });
  const ran = vi.fn(existing);
  const binding = { scope: () => ({ tenant: "acme", client: null }), ...options };
  const schema = buildSchema(typeDefs);
  const input = ({ args }: { args: { readonly input?: unknown } }) => args.input;
  const key = () => "k";
  const rootValue = {};
  const fields = schema.getMutationType()?.getFields() ?? {};
  const resolvers = {
    order: idempotentResolver(wrap, binding, ran),
    other: idempotentResolver(wrap, binding, ran),
    nested: idempotentResolver(run, { ...binding, input, key }),
  };
  for (const [name, resolve] of Object.entries(resolvers)) Object.assign(fields[name] ?? {}, { resolve });
  const peek = schema.getQueryType()?.getFields().peek;
  Object.assign(peek ?? {}, { resolve: resolvers.order });
  await once.start();
  const send = (source: string, variableValues: Record<string, unknown> = {}) =>
    graphql({ schema, source, rootValue, variableValues });
  return { send, ran, schema };
}

const data = (result: { readonly data?: unknown }) => JSON.parse(JSON.stringify(result.data));

describe("the key", () => {
  it.each([
    ["argument", `mutation { order(item: "tea", idempotencyKey: "k") { item } }`],
    ["directive", `mutation { order(item: "tea") @idempotent(key: "k") { item } }`],
    ["variable", `mutation ($k: String = "k") { order(item: "tea") @idempotent(key: $k) { item } }`],
    ["both, when they agree", `mutation { order(item: "tea", idempotencyKey: "k") @idempotent(key: "k") { item } }`],
    ["fragment", `mutation { ...F } fragment F on Mutation { order(item: "tea") @idempotent(key: "k") { item } }`],
  ])("comes by %s, and is the same key", async (_, document) => {
    const { send, ran } = await world();
    await send(`mutation { order(item: "tea", idempotencyKey: "k") { item } }`);
    expect(data(await send(document))).toEqual({ order: { item: "tea" } });
    expect(ran).toHaveBeenCalledTimes(1);
  });

  it.each([
    `mutation { order(idempotencyKey: "a") @idempotent(key: "b") { item } }`,
    `mutation { order @idempotent(key: "a") { item } order @idempotent(key: "b") { total } }`,
  ])("is refused where two were sent: %s", async (document) => {
    const { send, ran } = await world();
    const { errors } = await send(document);
    expect(errors?.[0]?.extensions).toEqual({
      code: "idempotency_key_invalid",
      retry: "new_key",
      state: "none",
      http: { status: 400 },
    });
    expect(ran).not.toHaveBeenCalled();
  });

  it("may be an ID", async () => {
    const { send, ran } = await world();
    const document = `mutation { other(item: "tea", idempotencyKey: 17) { item } }`;
    expect(data(await send(document))).toEqual(data(await send(document)));
    expect(ran).toHaveBeenCalledTimes(1);
  });

  it("is not needed where none is required", async () => {
    const { send, ran } = await world(undefined, { requireKey: false });
    const document = `mutation { order(item: "tea") { item } }`;
    expect([data(await send(document)), data(await send(document))]).toEqual(Array(2).fill({ order: { item: "tea" } }));
    expect(ran).toHaveBeenCalledTimes(2);
  });
});

describe("a document", () => {
  it("may select other members on a retry: the field's whole value is what is kept", async () => {
    const { send, ran } = await world();
    const document = (selection: string) => `mutation { order(item: "tea", idempotencyKey: "k") { ${selection} } }`;
    expect(data(await send(document("item")))).toEqual({ order: { item: "tea" } });
    expect(data(await send(document("sum: total")))).toEqual({ order: { sum: 7 } });
    expect(ran).toHaveBeenCalledTimes(1);
  });

  it("may call one mutation several times, each under its own key", async () => {
    const { send, ran } = await world();
    const document = `mutation {
      a: order(item: "tea", idempotencyKey: "a") { item }
      b: order(item: "milk", idempotencyKey: "b") { item }
      again: order(item: "tea", idempotencyKey: "a") { total }
      wrong: order(item: "milk", idempotencyKey: "a") { item }
    }`;
    const result = await send(document);
    expect(data(result)).toEqual({ a: { item: "tea" }, b: { item: "milk" }, again: { total: 7 }, wrong: null });
    expect(result.errors?.map(({ path, extensions }) => [path, extensions.code])).toEqual([
      [["wrong"], "idempotency_payload_mismatch"],
    ]);
    expect(ran).toHaveBeenCalledTimes(2);
  });

  it("that asks another field under the key is another request", async () => {
    const { send, ran } = await world();
    await send(`mutation { order(item: "tea", idempotencyKey: "k") { item } }`);
    const { errors } = await send(`mutation { other(item: "tea", idempotencyKey: "k") { item } }`);
    expect(errors?.[0]?.extensions.code).toBe("idempotency_payload_mismatch");
    expect(ran).toHaveBeenCalledTimes(1);
  });

  it("that is no mutation is a developer's mistake, which clients are not shown", async () => {
    const { send, ran } = await world();
    const { errors } = await send(`query { peek { item } }`);
    expect(errors?.[0]?.message).not.toContain("order");
    expect(errors?.[0]?.originalError?.cause).toMatchObject({ code: "oncekey_config_invalid" });
    expect(ran).not.toHaveBeenCalled();
  });

  it("hands an operation the part of the arguments that input names", async () => {
    const { send } = await world();
    const result = await send(`mutation { nested(input: { item: "tea", note: "hot" }) { item extra } }`);
    expect(data(result)).toEqual({ nested: { item: "tea", extra: { note: "hot" } } });
  });
});

describe("errors", () => {
  const document = `mutation { order(item: "tea", idempotencyKey: "k") { item } }`;

  it("of an operation carry the members of its problem", async () => {
    const { send } = await world();
    const { errors } = await send(`mutation { nested(input: { item: "none" }) { item } }`);
    expect(errors?.[0]).toMatchObject({ message: "No such item", path: ["nested"] });
    expect(errors?.[0]?.extensions).toMatchObject({ code: "REJECTED", hint: 1, http: { status: 404 } });
  });

  it.each([
    ["thrown", () => Promise.reject(new GraphQLError("Taken", { extensions: { code: "TAKEN", until: new Date(0) } }))],
    ["returned", () => new GraphQLError("Taken", { extensions: { code: "TAKEN", until: new Date(0) } })],
  ])("that are %s with a code are refusals, and the same on the replay", async (_, existing) => {
    const { send, ran } = await world(existing);
    const [first, replay] = [await send(document), await send(document)];
    expect(first.errors?.[0]?.toJSON()).toMatchObject({ message: "Taken", extensions: { code: "TAKEN" } });
    expect(replay.errors?.[0]?.toJSON()).toEqual(first.errors?.[0]?.toJSON());
    expect(replay.errors?.[0]?.originalError).toBeInstanceOf(GraphQLError);
    expect(ran).toHaveBeenCalledTimes(1);
  });

  it("that wrap another one do so on the replay as well, so that servers hide both", async () => {
    const { send, ran } = await world(() => {
      throw new GraphQLError("secret", { originalError: new Error("secret"), extensions: { code: "TAKEN" } });
    });
    const hiddenIn = async () => {
      const located = (await send(document)).errors?.[0]?.originalError as GraphQLError | undefined;
      return located?.originalError?.constructor;
    };
    expect([await hiddenIn(), await hiddenIn()]).toEqual([Error, Error]);
    expect(ran).toHaveBeenCalledTimes(1);
  });

  it.each([
    ["an object", { "Set-Cookie": "session=1", "Retry-After": "5" }, { "retry-after": "5" }],
    ["a Map", new Map([["set-cookie", "session=1"]]), undefined],
  ])("give their status on the replay, and of headers in %s those that HTTP replays", async (_, headers, kept) => {
    const http = { status: 402, headers: headers as Record<string, string> };
    const { send, ran } = await world(() => Promise.reject(new GraphQLError("Pay", { extensions: { http } })));
    const httpIn = async () => (await send(document)).errors?.[0]?.extensions.http;
    expect(await httpIn()).toEqual(http);
    expect(await httpIn()).toEqual({ status: 402, ...(kept && { headers: kept }) });
    expect(ran).toHaveBeenCalledTimes(1);
  });

  it.each([
    ["has no code", new GraphQLError("Something")],
    ["says INTERNAL_SERVER_ERROR", new GraphQLError("x", { extensions: { code: "INTERNAL_SERVER_ERROR" } })],
    ["says 503", new GraphQLError("x", { extensions: { code: "DOWN", http: { status: 503 } } })],
    ["is no GraphQL error", Object.assign(new Error("x"), { extensions: { code: "TAKEN" } })],
  ])("of which one %s leave the outcome unknown", async (_, error) => {
    const { send, ran } = await world(() => Promise.reject(error));
    await send(document);
    const { errors } = await send(document);
    expect(errors?.[0]?.extensions).toMatchObject({
      code: "idempotency_outcome_unknown",
      state: "needs_recovery",
      retry: "same_key",
      retryAfterMs: expect.any(Number),
      http: { status: 409 },
    });
    expect(ran).toHaveBeenCalledTimes(1);
  });

  it("are told as well where the schema has a String of its own", async () => {
    const { send, schema } = await world();
    const own = new GraphQLScalarType({ name: "String", parseValue: () => "anything" });
    vi.spyOn(schema, "getType").mockImplementation(() => own);
    const { errors } = await send(`mutation { order { item } }`);
    expect(errors?.[0]?.extensions).toMatchObject({ code: "idempotency_key_missing", http: { status: 400 } });
  });
});

describe("a field below the root", () => {
  async function shop(options: object = {}) {
    const { once, wrap } = captured();
    const ran: unknown[] = [];
    const cancel = idempotentResolver(
      wrap,
      { scope: () => ({ tenant: "acme", client: null }), ...options },
      (source) => {
        ran.push((source as { id?: unknown }).id);
        return { id: (source as { id?: unknown }).id };
      },
    );
    const schema = buildSchema(`
      type Order { id: ID, cancel(idempotencyKey: String): Order }
      type Query { ping: String }
      type Mutation { order(id: ID): Order, orders: Order }
    `);
    const order = schema.getType("Order") as GraphQLObjectType;
    Object.assign(order.getFields().cancel ?? {}, { resolve: cancel });
    const rootValue = { order: ({ id }: { id: string }) => ({ id }), orders: {} };
    await once.start();
    return { ran, send: (source: string) => graphql({ schema, source, rootValue }) };
  }

  const both = `mutation {
    a: order(id: 1) { cancel(idempotencyKey: "k") { id } }
    b: order(id: 2) { cancel(idempotencyKey: "k") { id } }
  }`;

  it("is refused where nothing tells of which object it was asked", async () => {
    const { send, ran } = await shop();
    const { errors } = await send(both);
    const cause = (errors?.[0]?.originalError as Error | undefined)?.cause;
    expect(errors).toHaveLength(2);
    expect(cause).toMatchObject({ code: "oncekey_config_invalid", message: expect.stringContaining("Order.cancel") });
    expect(ran).toEqual([]);
  });

  it("is another request for another object where input names it", async () => {
    const input = ({ source }: { source: { id: string } }) => source;
    const { send, ran } = await shop({ input });
    const { errors } = await send(both);
    expect(errors?.map(({ path, extensions }) => [path?.[0], extensions.code])).toEqual([
      ["b", "idempotency_payload_mismatch"],
    ]);
    expect(ran).toEqual(["1"]);
  });

  it("may stand in a namespace, which is no object of its own", async () => {
    const { send, ran } = await shop();
    const document = `mutation { orders { cancel(idempotencyKey: "k") { id } } }`;
    for (const _ of [1, 2]) expect(data(await send(document))).toEqual({ orders: { cancel: { id: null } } });
    expect(ran).toEqual([undefined]);
  });
});

describe("values", () => {
  it("keep dates, big integers and bytes for the scalars that write them", async () => {
    const extra = { at: new Date(5), big: 2n ** 70n, bytes: new Uint8Array([1, 2]) };
    const { send, schema, ran } = await world(() => ({ item: "tea", extra }));
    const seen: unknown[] = [];
    Object.assign(schema.getType("Any") ?? {}, { serialize: (value: unknown) => seen.push(value) });
    const document = `mutation { order(idempotencyKey: "k") { extra } }`;
    await send(document);
    await send(document);
    expect(seen).toEqual([extra, extra]);
    expect(ran).toHaveBeenCalledTimes(1);
  });
});

describe("a binding", () => {
  const once = createOncekey({ store: memoryStore() });
  const wrap = once.capture({ name: "wrap", version: 1 });
  const run = once.transaction({ name: "run", version: 1, run: async () => ok(1) });
  const scope = () => ({ tenant: "acme", client: null });

  it.each([
    ["a capture without a resolver", () => idempotentResolver(wrap, { scope }, undefined as never)],
    ["a transaction with one", () => (idempotentResolver as (...given: unknown[]) => unknown)(run, { scope }, () => 1)],
  ])("refuses %s", (_, bind) => {
    expect(bind).toThrow(expect.objectContaining({ code: "oncekey_config_invalid" }));
  });

  it("refuses to be made without a scope", () => {
    expect(() => idempotentResolver(run, {} as never)).toThrow(
      expect.objectContaining({ code: "oncekey_scope_invalid" }),
    );
  });
});
