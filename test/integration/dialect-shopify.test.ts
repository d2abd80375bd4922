import { createSchema, createYoga } from "graphql-yoga";
import { createOncekey, notDone, ok } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { idempotentDirective, idempotentResolver } from "oncekey/graphql";
import { postgresStore } from "oncekey/postgres";
import type pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { type Gate, gate } from "../support/gate.ts";
import { createDatabase, testPool } from "../support/postgres.ts";
import { served } from "./support/capturing.ts";

// Codes and shapes as a schema of Shopify's has them: an enumeration, so that no code of ours can slip in.
const typeDefs = `
  ${idempotentDirective}
  enum RefundErrorCode {
    NOT_FOUND
    IDEMPOTENCY_CONCURRENT_REQUEST
    IDEMPOTENCY_KEY_PARAMETER_MISMATCH
    IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED
  }
  type RefundUserError { field: [String!], message: String!, code: RefundErrorCode }
  type Refund { id: ID!, amount: Int!, note: String }
  type RefundPayload { refund: Refund, userErrors: [RefundUserError!]! }
  type OldPayload { refund: Refund, refundUserErrors: [RefundUserError!]! }
  input RefundInput { orderId: ID!, amount: Int!, note: String }
  type Query { ping: String }
  type Mutation {
    refundCreate(input: RefundInput!): RefundPayload
    refundOld(input: RefundInput!, idempotencyKey: String): OldPayload
    refundWrapped(input: RefundInput!): RefundPayload
  }
`;

interface RefundInput {
  readonly orderId: string;
  readonly amount: number;
  readonly note?: string;
}

let pool: pg.Pool;

beforeAll(async () => {
  pool = testPool((await createDatabase()).url);
  await pool.query("CREATE TABLE refund (id serial PRIMARY KEY, order_id text NOT NULL, amount int NOT NULL)");
});

interface Step {
  readonly tx: pg.PoolClient;
  readonly input: { readonly body: unknown };
}

/** Where a run that is told to wait has got to. */
interface Hold {
  readonly entered: Gate;
  readonly go: Gate;
}

async function shop() {
  const once = createOncekey({ store: postgresStore(fromPg(pool)), profile: "shopify", waitMs: 0, onError: () => {} });
  let hold: Hold | null = null;
  const run = (member: string) => async (step: Step) => {
    const { input } = step.input.body as { input: RefundInput };
    hold?.entered.open();
    await hold?.go.promise;
    const { rows } = await step.tx.query("INSERT INTO refund (order_id, amount) VALUES ($1, $2) RETURNING id", [
      input.orderId,
      input.amount,
    ]);
    return ok({ refund: { ...input, id: rows[0].id }, [member]: [] });
  };
  const scope = () => ({ tenant: "shop", client: null });
  const create = once.transaction({ name: "refundCreate", version: 1, run: run("userErrors") });
  const old = once.transaction({ name: "refundOld", version: 1, run: run("refundUserErrors") });
  const wrapped = once.capture({ name: "refundWrapped", version: 1, reconcile: async () => notDone() });
  const existing = async (_: unknown, { input }: { input: RefundInput }) => {
    await pool.query("INSERT INTO refund (order_id, amount) VALUES ($1, $2)", [input.orderId, input.amount]);
    return { refund: { ...input, id: "w" }, userErrors: [] };
  };
  const Mutation = {
    refundCreate: idempotentResolver(create, { scope }),
    refundOld: idempotentResolver(old, { scope, errorsMember: "refundUserErrors" }),
    refundWrapped: idempotentResolver(wrapped, { scope }, existing),
  };
  await once.start();
  const schema = createSchema({ typeDefs, resolvers: { Mutation } }) as never;
  const url = `${await served(createYoga({ schema, logging: false }))}/graphql`;
  return {
    once,
    hold: (next: Hold | null) => {
      hold = next;
    },
    async send(query: string) {
      const answer = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ query }),
      });
      return { status: answer.status, ...((await answer.json()) as { data?: never; errors?: never }) };
    },
  };
}

let orders = 0;

/** An order that no other test has. */
function newOrder(): string {
  orders += 1;
  return `gid://shopify/Order/${orders}`;
}

const refunds = async (orderId: string) =>
  (await pool.query("SELECT amount FROM refund WHERE order_id = $1 ORDER BY id", [orderId])).rows.map(
    ({ amount }) => amount,
  );

const PAYLOAD = "{ refund { id amount } userErrors { field message code } }";

const field = (orderId: string, key: string | null, amount = 10, payload = PAYLOAD) =>
  `refundCreate(input: { orderId: "${orderId}", amount: ${amount} }) ${key === null ? "" : `@idempotent(key: "${key}")`} ${payload}`;

const mutation = (...fields: string[]) => `mutation { ${fields.join(" ")} }`;

const userError = (code: string) => ({
  refund: null,
  userErrors: [{ field: null, message: expect.any(String), code }],
});

describe("a mutation of the shopify dialect", () => {
  it("runs once, and gives its payload to every repetition, whatever that selects", async () => {
    const { send } = await shop();
    const order = newOrder();
    const first = await send(mutation(field(order, "k1")));
    expect(first).toMatchObject({ status: 200, data: { refundCreate: { refund: { amount: 10 }, userErrors: [] } } });
    expect(await send(mutation(field(order, "k1")))).toEqual(first);
    const other = await send(mutation(field(order, "k1", 10, "{ refund { note id } }")));
    expect(other).toMatchObject({ data: { refundCreate: { refund: { note: null } } } });
    expect(await refunds(order)).toEqual([10]);
  });

  it("under a key of other variables is a user error with HTTP 200", async () => {
    const { send } = await shop();
    const order = newOrder();
    await send(mutation(field(order, "k2")));
    expect(await send(mutation(field(order, "k2", 11)))).toEqual({
      status: 200,
      data: { refundCreate: userError("IDEMPOTENCY_KEY_PARAMETER_MISMATCH") },
    });
    expect(await refunds(order)).toEqual([10]);
  });

  it("whose first request still runs is a user error that asks for the same key again", async () => {
    const { send, hold } = await shop();
    const order = newOrder();
    const waiting = { entered: gate(), go: gate() };
    hold(waiting);
    const first = send(mutation(field(order, "k3")));
    await waiting.entered.promise;
    expect(await send(mutation(field(order, "k3")))).toEqual({
      status: 200,
      data: { refundCreate: userError("IDEMPOTENCY_CONCURRENT_REQUEST") },
    });
    waiting.go.open();
    const answered = await first;
    expect(await send(mutation(field(order, "k3")))).toEqual(answered);
    expect(await refunds(order)).toEqual([10]);
  });

  it.each([
    ["without a key", null],
    ["with an empty key", " "],
  ])("%s is an error of the request, and nothing runs", async (_, key) => {
    const { send } = await shop();
    const order = newOrder();
    const { status, data, errors } = await send(mutation(field(order, key)));
    expect([status, data]).toEqual([200, { refundCreate: null }]);
    expect(errors).toMatchObject([{ path: ["refundCreate"], extensions: { code: "BAD_REQUEST" } }]);
    expect(await refunds(order)).toEqual([]);
  });

  it("in two fields has two keys, and one field's refusal leaves the other alone", async () => {
    const { send } = await shop();
    const order = newOrder();
    const [a, b] = [`a: ${field(order, "k5a")}`, `b: ${field(order, "k5b", 20)}`];
    const both = await send(mutation(a, b));
    expect(both).toMatchObject({ data: { a: { refund: { amount: 10 } }, b: { refund: { amount: 20 } } } });
    const mixed = await send(mutation(a, `b: ${field(order, "k5b", 21)}`));
    expect(mixed).toMatchObject({
      data: { a: { refund: { amount: 10 } }, b: userError("IDEMPOTENCY_KEY_PARAMETER_MISMATCH") },
    });
    expect(await refunds(order)).toEqual([10, 20]);
  });

  it("under one key in two fields runs once: the same content is a repetition, another one is refused", async () => {
    const { send } = await shop();
    const order = newOrder();
    const same = await send(mutation(`a: ${field(order, "k6")}`, `b: ${field(order, "k6")}`));
    const { a, b } = same.data as unknown as { a: unknown; b: unknown };
    expect(b).toEqual(a);
    const other = await send(mutation(`a: ${field(order, "k6")}`, `b: ${field(order, "k6", 12)}`));
    expect(other).toMatchObject({ data: { b: userError("IDEMPOTENCY_KEY_PARAMETER_MISMATCH") } });
    expect(await refunds(order)).toEqual([10]);
  });

  it("may carry its key as an argument, and call its errors otherwise", async () => {
    const { send } = await shop();
    const order = newOrder();
    const old = (amount: number) =>
      send(
        mutation(
          `refundOld(input: { orderId: "${order}", amount: ${amount} }, idempotencyKey: "k7") { refund { amount } refundUserErrors { code } }`,
        ),
      );
    expect(await old(10)).toMatchObject({ data: { refundOld: { refund: { amount: 10 }, refundUserErrors: [] } } });
    expect(await old(11)).toMatchObject({
      data: { refundOld: { refund: null, refundUserErrors: [{ code: "IDEMPOTENCY_KEY_PARAMETER_MISMATCH" }] } },
    });
    expect(await refunds(order)).toEqual([10]);
  });

  it("of existing code is refused in the same way", async () => {
    const { send } = await shop();
    const order = newOrder();
    const wrapped = (amount: number) =>
      send(
        mutation(`refundWrapped(input: { orderId: "${order}", amount: ${amount} }) @idempotent(key: "k8") ${PAYLOAD}`),
      );
    expect(await wrapped(10)).toMatchObject({ data: { refundWrapped: { refund: { amount: 10 } } } });
    expect(await wrapped(11)).toMatchObject({
      data: { refundWrapped: userError("IDEMPOTENCY_KEY_PARAMETER_MISMATCH") },
    });
    expect(await refunds(order)).toEqual([10]);
  });

  it("is an error of the server while the instance closes, with a status that clients come back after", async () => {
    const { send, once } = await shop();
    await once.close();
    const order = newOrder();
    const { status, errors } = await send(mutation(field(order, "k9")));
    expect(status).toBe(503);
    expect(errors).toMatchObject([
      { extensions: { code: "INTERNAL_SERVER_ERROR", reason: "idempotency_closing", retry: "same_key" } },
    ]);
    expect(await refunds(order)).toEqual([]);
  });
});
