import { request as httpRequest, type OutgoingHttpHeaders, type RequestOptions } from "node:http";
import { beforeAll, expect, it } from "vitest";
import { paypal } from "../peers/vendor-sdks/sdks.ts";
import { behave, send } from "./support/client.ts";
import { counted, errorOf, openSdkWorld, type SdkWorld } from "./support/sdk-cases.ts";
import { rowsOf } from "./support/sdk-rows.ts";
import { A_CHARGE, type SdkHarness, sdkSuite } from "./support/sdk-suite.ts";

// PayPal's server SDK against the example in its dialect: as it is by default, when it sends no POST twice, and with retries
// of POST switched on.

let world: SdkWorld;
let orders: paypal.OrdersController;
let persistent: paypal.OrdersController;

beforeAll(async () => {
  world = await openSdkWorld("paypal");
  orders = controller();
  persistent = controller({
    retryConfig: { maxNumberOfRetries: 3, retryInterval: 1, maximumRetryWaitTime: 60, httpMethodsToRetry: ["POST"] },
  });
  // Each of them asks for its access token before its first order, and keeps it.
  for (const one of [orders, persistent]) await create("warm-up", { by: one });
});

/** The SDK's hosts are fixed: what its HTTP client sends to them goes to the proxy instead, everything else is its own. */
function controller({ retryConfig, secret = "sk_test_acme_secret" }: { retryConfig?: object; secret?: string } = {}) {
  const transport = {
    request: ({ hostname, method, path, headers }: RequestOptions, answered: Parameters<typeof httpRequest>[2]) => {
      const options = { hostname: "127.0.0.1", port: world.proxy.port, agent: false, method, path };
      return httpRequest({ ...options, headers: { ...headers, host: hostname } as OutgoingHttpHeaders }, answered);
    },
  };
  const client = new paypal.Client({
    environment: paypal.Environment.Sandbox,
    clientCredentialsAuthCredentials: { oAuthClientId: "sk_test_acme", oAuthClientSecret: secret },
    unstable_httpClientOptions: { transport },
    ...(retryConfig !== undefined && { httpClientOptions: { retryConfig } }),
  });
  return new paypal.OrdersController(client);
}

function create(paypalRequestId?: string, { card = "tok_visa", value = "19.99", by = orders } = {}) {
  return by.createOrder({
    body: {
      intent: paypal.CheckoutPaymentIntent.Capture,
      purchaseUnits: [{ referenceId: "unit-7", amount: { currencyCode: "EUR", value } }],
      paymentSource: { card: { vaultId: card } },
    },
    ...(paypalRequestId !== undefined && { paypalRequestId }),
  });
}

const completed = {
  statusCode: 201,
  result: {
    id: expect.stringMatching(/^[0-9A-F]{17}$/),
    status: "COMPLETED",
    purchaseUnits: [
      {
        referenceId: "unit-7",
        payments: { captures: [{ status: "COMPLETED", amount: { currencyCode: "EUR", value: "19.99" } }] },
      },
    ],
  },
};
const COMPLETED = "Order COMPLETED";

/** As the SDK shows an error whose status its operation lists: 400, 401, 422. */
const listed = (statusCode: number, name: string, issue: string) => ({
  statusCode,
  result: {
    name,
    details: [{ issue, description: expect.any(String) }],
    debug_id: expect.stringMatching(/^[0-9a-f]{13}$/),
  },
});

/** What every other error's body holds, which the SDK leaves as text. */
function bodyOf(error: unknown): unknown {
  expect(error).toBeInstanceOf(paypal.CustomError);
  return JSON.parse((error as paypal.CustomError).body as string);
}

/** What the SDK leaves to its caller by default: a lost connection as its HTTP client tells it. */
const lost = {
  variant: "retried by the caller",
  result: `AxiosError ECONNRESET, then ${COMPLETED}`,
  error(error: unknown) {
    expect((error as Error).constructor.name).toBe("AxiosError");
    expect(error).toMatchObject({ code: "ECONNRESET" });
  },
};

const RETRY_AFTER = expect.stringMatching(/^[1-9]\d*$/);
const inProgress = { name: "RESOURCE_CONFLICT", details: [{ issue: "PREVIOUS_REQUEST_IN_PROGRESS" }] };

const byDefault: SdkHarness<Awaited<ReturnType<typeof create>>> = {
  name: "by default",
  world: () => world,
  pay: (key, content) => create(key ?? undefined, content === "a" ? {} : { value: "20.00" }),
  keyOf: ({ headers }) => headers["paypal-request-id"],
  effects: A_CHARGE,
  accepted(given, { attempts }) {
    expect(given).toMatchObject(completed);
    expect(given.headers["paypal-debug-id"]).toMatch(/^[0-9a-f]{13}$/);
    const sent = attempts.at(-1)?.headers;
    expect([sent?.host, sent?.authorization]).toEqual([
      "api-m.sandbox.paypal.com",
      expect.stringMatching(/^Bearer A21AA/),
    ]);
  },
  shown: ({ result, body }) => ({ result, body }),
  record: rowsOf({ sdk: "@paypal/paypal-server-sdk", project: "vendor-sdks", profile: "paypal" }),
  rows: {
    first: { result: COMPLETED },
    cut_before: lost,
    cut_after: lost,
    same_key: { result: COMPLETED },
    other_content: {
      result: "CustomError 422 DUPLICATE_REQUEST_ID",
      error(error) {
        expect(error).toBeInstanceOf(paypal.CustomError);
        expect(error).toMatchObject(listed(422, "UNPROCESSABLE_ENTITY", "DUPLICATE_REQUEST_ID"));
      },
    },
    duplicate: { result: COMPLETED },
    duplicate_long: {
      variant: "longer than it waits",
      result: "CustomError 409 PREVIOUS_REQUEST_IN_PROGRESS",
      error(error) {
        expect(error).toMatchObject({ statusCode: 409, headers: { "retry-after": RETRY_AFTER } });
        expect(bodyOf(error)).toMatchObject(inProgress);
      },
    },
    store_down: {
      result: "CustomError 503 SERVICE_UNAVAILABLE",
      error(error) {
        expect(error).toMatchObject({ statusCode: 503, headers: { "retry-after": "1" } });
        const details = [{ issue: "SERVICE_UNAVAILABLE" }];
        expect(bodyOf(error)).toMatchObject({ name: "SERVICE_UNAVAILABLE", details });
      },
    },
  },
};

const withRetries: typeof byDefault = {
  ...byDefault,
  name: "with retries of POST",
  pay: (key) => create(key ?? undefined, { by: persistent }),
  rows: {
    cut_before: { variant: "retries of POST on", result: COMPLETED },
    cut_after: { variant: "retries of POST on", result: COMPLETED },
    duplicate_long: {
      variant: "longer than it waits, retries of POST on",
      result: COMPLETED,
      told({ status, body }) {
        expect(status).toBe(409);
        expect(JSON.parse(body)).toMatchObject(inProgress);
      },
    },
  },
};

sdkSuite(byDefault, withRetries);

it("a declined card is an error that is kept: the same again for the same key", async () => {
  const decline = () => errorOf(create("declined", { card: "tok_declined" }));
  const { given, effects, attempts } = await counted(world, async () => [await decline(), await decline()]);
  expect(given[0]).toMatchObject(listed(422, "UNPROCESSABLE_ENTITY", "INSTRUMENT_DECLINED"));
  expect(attempts[1]?.answer?.body).toBe(attempts[0]?.answer?.body);
  expect(effects).toMatchObject({ charges: 1, authorizations: 1, captures: 0 });
});

it("a provider that is down leaves the outcome open: 409 with Retry-After, and an SDK with retries learns it", async () => {
  const { given, effects } = await counted(world, async () => {
    await behave(world.lab.psp.url, { down: true });
    const error = await errorOf(create("open"));
    await behave(world.lab.psp.url, { down: false });
    return { error, later: await create("open", { by: persistent }) };
  });
  expect(given.error).toMatchObject({ statusCode: 409, headers: { "retry-after": RETRY_AFTER } });
  expect(bodyOf(given.error)).toMatchObject({ details: [{ issue: "PREVIOUS_REQUEST_IN_PROGRESS" }] });
  expect(given.later).toMatchObject(completed);
  expect(effects).toMatchObject({ charges: 1, authorizations: 1, captures: 1 });
});

it("a fault of the handler's own is PayPal's 500, and the key may try again", async () => {
  const { given, executions } = await counted(world, async () => {
    await world.lab.sql("ALTER TABLE charges RENAME TO charges_away");
    const error = await errorOf(create("fault"));
    await world.lab.sql("ALTER TABLE charges_away RENAME TO charges");
    return { error, later: await create("fault") };
  });
  expect(given.error).toMatchObject({ statusCode: 500 });
  expect(bodyOf(given.error)).toMatchObject({ name: "INTERNAL_SERVER_ERROR", debug_id: expect.any(String) });
  expect(given.later).toMatchObject(completed);
  expect(executions).toBe(1);
});

it("who may not ask, and what cannot be read, hear of it in PayPal's words", async () => {
  const { given, executions } = await counted(world, async () => ({
    stranger: await errorOf(create("stranger", { by: controller({ secret: "guessed" }) })),
    none: await errorOf(create()),
    long: await errorOf(create("k".repeat(109))),
    negative: await errorOf(create("negative", { value: "-1.00" })),
    tooFine: await errorOf(create("tooFine", { value: "1.999" })),
  }));
  expect(given.stranger).toMatchObject({ statusCode: 401, result: { error: "invalid_client" } });
  expect(given.none).toMatchObject(listed(400, "INVALID_REQUEST", "PAYPAL_REQUEST_ID_REQUIRED"));
  expect(given.long).toMatchObject(listed(400, "INVALID_REQUEST", "INVALID_PARAMETER_VALUE"));
  expect(given.negative).toMatchObject(listed(400, "INVALID_REQUEST", "INVALID_PARAMETER_SYNTAX"));
  expect(given.tooFine).toMatchObject(listed(400, "INVALID_REQUEST", "INVALID_PARAMETER_SYNTAX"));
  expect(executions).toBe(0);
});

it("an access token shows nothing of its client, and nobody can make one up", async () => {
  const token = /^Bearer (\S+)$/.exec(world.proxy.attempts.at(-1)?.headers.authorization ?? "")?.[1] ?? "";
  expect(token).not.toContain("sk_test_acme");
  for (const bearer of ["sk_test_acme", token.slice(0, -1), `${token}A`]) {
    const response = await fetch(`${world.api.url}/v2/checkout/orders`, {
      method: "POST",
      headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json", "paypal-request-id": "forged" },
      body: "{}",
    });
    expect([response.status, await response.json()]).toMatchObject([
      401,
      { name: "AUTHENTICATION_FAILURE", links: [] },
    ]);
  }
});

it("serves the common routes too: PayPal's header, refusals in PayPal's words", async () => {
  const headers = { "paypal-request-id": "common" };
  const ask = async (amount_minor: number) => {
    const body = { customer_id: "cus_1", amount_minor, currency: "EUR" };
    const answer = await send("POST", `${world.api.url}/v1/invoices`, { headers, body });
    return answer.json().details?.[0].issue ?? answer.status;
  };
  const { given, executions } = await counted(world, async () => [await ask(1), await ask(1), await ask(2)]);
  expect(given).toEqual([201, 201, "DUPLICATE_REQUEST_ID"]);
  expect(executions).toBe(1);
});

it("moves no money for another dialect's key: the common routes always need this one's, and the page is not there", async () => {
  const body = { amount_minor: 100, currency: "EUR", source: "tok_visa" };
  const { given, executions } = await counted(world, () =>
    Promise.all([1, 2].map(() => send("POST", `${world.api.url}/v1/charges`, { key: "ours", body }))),
  );
  expect(given.map(({ status, json }) => [status, json().details[0].issue])).toEqual([
    [400, "PAYPAL_REQUEST_ID_REQUIRED"],
    [400, "PAYPAL_REQUEST_ID_REQUIRED"],
  ]);
  expect(executions).toBe(0);
  expect((await send("GET", `${world.api.url}/checkout`, { token: null })).status).toBe(404);
});
