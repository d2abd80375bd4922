import { beforeAll, expect, it } from "vitest";
import { square } from "../peers/vendor-sdks/sdks.ts";
import { behave, send } from "./support/client.ts";
import { counted, errorOf, openSdkWorld, type SdkWorld } from "./support/sdk-cases.ts";
import { rowsOf } from "./support/sdk-rows.ts";
import { A_CHARGE, type SdkHarness, sdkSuite } from "./support/sdk-suite.ts";

// Square's SDK against the example in its dialect. It sends 5xx again by itself, three times in all, but neither a lost
// connection nor a 409: those rows show the caller's own retry with the same key.

let world: SdkWorld;
let client: square.SquareClient;

beforeAll(async () => {
  world = await openSdkWorld("square");
  client = clientOf("sk_test_acme");
});

function clientOf(token: string): square.SquareClient {
  return new square.SquareClient({ token, baseUrl: `http://127.0.0.1:${world.proxy.port}` });
}

function pay(idempotencyKey: string, { card = "tok_visa", amount = 1_999n, by = client, maxRetries = 2 } = {}) {
  const amountMoney = { amount, currency: "EUR" as const };
  return by.payments.create({ sourceId: card, idempotencyKey, amountMoney, locationId: "L1" }, { maxRetries });
}

const completed = {
  payment: {
    id: expect.stringMatching(/^[0-9a-f]{32}$/),
    status: "COMPLETED",
    amountMoney: { amount: 1_999n, currency: "EUR" },
    locationId: "L1",
  },
};
const COMPLETED = "CreatePaymentResponse COMPLETED";

const squareError = (statusCode: number, error: Readonly<Record<string, unknown>>) => ({
  name: "SquareError",
  statusCode,
  errors: [expect.objectContaining(error)],
});

const lost = {
  variant: "retried by the caller",
  result: `SquareError "fetch failed", then ${COMPLETED}`,
  error(error: unknown) {
    expect(error).toBeInstanceOf(square.SquareError);
    expect(error).toMatchObject({ message: "fetch failed", statusCode: undefined });
  },
};

const harness: SdkHarness<Awaited<ReturnType<typeof pay>>> = {
  world: () => world,
  pay: (key, content) => pay(key ?? "", content === "a" ? {} : { amount: 2_000n }),
  keyOf: ({ body }) => JSON.parse(body).idempotency_key,
  effects: A_CHARGE,
  accepted: (given) => expect(given).toMatchObject(completed),
  record: rowsOf({ sdk: "square", project: "vendor-sdks", profile: "square" }),
  rows: {
    first: { result: COMPLETED },
    cut_before: lost,
    cut_after: lost,
    same_key: { result: COMPLETED },
    other_content: {
      result: "SquareError 400 IDEMPOTENCY_KEY_REUSED",
      error: (error) =>
        expect(error).toMatchObject(
          squareError(400, {
            category: "INVALID_REQUEST_ERROR",
            code: "IDEMPOTENCY_KEY_REUSED",
            field: "idempotency_key",
          }),
        ),
    },
    duplicate: { result: COMPLETED },
    duplicate_long: {
      variant: "longer than it waits",
      result: COMPLETED,
      told({ status, body }) {
        expect(status).toBe(503);
        expect(JSON.parse(body)).toMatchObject({ errors: [{ category: "API_ERROR", code: "TEMPORARY_ERROR" }] });
      },
    },
    store_down: {
      result: "SquareError 503 SERVICE_UNAVAILABLE",
      requests: 3,
      error: (error) =>
        expect(error).toMatchObject(squareError(503, { category: "API_ERROR", code: "SERVICE_UNAVAILABLE" })),
    },
  },
};

sdkSuite(harness);

it("keeps every digit of an amount, from the SDK's BigInt to the database and back", async () => {
  const amount = 9_007_199_254_740_993n;
  const { given } = await counted(world, async () => [await pay("exact", { amount }), await pay("exact", { amount })]);
  expect(given.map((answer) => answer.payment?.amountMoney?.amount)).toEqual([amount, amount]);
  const rows = await world.lab.sql("SELECT amount_minor::text FROM charges WHERE idempotency_key = 'exact'");
  expect(rows).toEqual([{ amount_minor: String(amount) }]);
  const near = await errorOf(pay("exact", { amount: amount - 1n }));
  expect(near).toMatchObject({ statusCode: 400, errors: [{ code: "IDEMPOTENCY_KEY_REUSED" }] });
});

it("a declined card is an error that is kept: the same again for the same key", async () => {
  const decline = () => errorOf(pay("declined", { card: "tok_declined" }));
  const { given, effects, attempts } = await counted(world, async () => [await decline(), await decline()]);
  expect(given[0]).toMatchObject(squareError(402, { category: "PAYMENT_METHOD_ERROR", code: "CARD_DECLINED" }));
  expect(attempts[1]?.answer?.body).toBe(attempts[0]?.answer?.body);
  expect(effects).toMatchObject({ charges: 1, authorizations: 1, captures: 0 });
});

it("a provider that is down leaves the outcome open: 503, and the SDK's next tries learn it", async () => {
  const { given, effects } = await counted(world, async () => {
    await behave(world.lab.psp.url, { down: true });
    const error = await errorOf(pay("open", { maxRetries: 0 }));
    await behave(world.lab.psp.url, { down: false });
    return { error, later: await pay("open") };
  });
  expect(given.error).toMatchObject(squareError(503, { category: "API_ERROR", code: "TEMPORARY_ERROR" }));
  expect(given.later).toMatchObject(completed);
  expect(effects).toMatchObject({ charges: 1, authorizations: 1, captures: 1 });
});

it("a fault of the handler's own is Square's 500, and the key may try again", async () => {
  const { given, executions } = await counted(world, async () => {
    await world.lab.sql("ALTER TABLE charges RENAME TO charges_away");
    const error = await errorOf(pay("fault", { maxRetries: 0 }));
    await world.lab.sql("ALTER TABLE charges_away RENAME TO charges");
    return { error, later: await pay("fault") };
  });
  expect(given.error).toMatchObject(squareError(500, { category: "API_ERROR", code: "INTERNAL_SERVER_ERROR" }));
  expect(given.later).toMatchObject(completed);
  expect(executions).toBe(1);
});

it("who may not ask, and what cannot be read, hear of it in Square's words", async () => {
  const { given, executions, attempts } = await counted(world, async () => ({
    nobody: await errorOf(pay("nobody", { by: clientOf("sk_test_nobody") })),
    negative: await errorOf(pay("negative", { amount: -1n })),
    long: await errorOf(pay("k".repeat(46))),
    none: await errorOf(client.payments.create({ sourceId: "tok_visa" } as never)),
  }));
  expect(given.nobody).toMatchObject(squareError(401, { category: "AUTHENTICATION_ERROR", code: "UNAUTHORIZED" }));
  expect(given.negative).toMatchObject(squareError(400, { category: "INVALID_REQUEST_ERROR", code: "BAD_REQUEST" }));
  expect(given.long).toMatchObject(squareError(400, { code: "INVALID_VALUE", field: "idempotency_key" }));
  // The SDK itself: nothing is sent without a key.
  expect(given.none).toMatchObject({ message: expect.stringContaining("idempotencyKey") });
  expect([attempts.length, executions]).toEqual([3, 0]);
});

it("serves the common routes too: the key in the body, refusals in Square's words", async () => {
  const ask = async (body: object) => {
    const answer = await send("POST", `${world.api.url}/v1/invoices`, { body });
    return answer.json().errors?.[0].code ?? answer.status;
  };
  const invoice = { customer_id: "cus_1", amount_minor: 100, currency: "EUR" };
  const { given, executions } = await counted(world, async () => [
    await ask(invoice),
    await ask({ ...invoice, idempotency_key: "common" }),
    await ask({ ...invoice, idempotency_key: "common" }),
    await ask({ ...invoice, idempotency_key: "common", currency: "USD" }),
  ]);
  expect(given).toEqual(["MISSING_REQUIRED_PARAMETER", 201, 201, "IDEMPOTENCY_KEY_REUSED"]);
  expect(executions).toBe(1);
});
