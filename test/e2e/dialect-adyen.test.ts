import type { AgentOptions } from "node:https";
import { beforeAll, expect, it } from "vitest";
import { adyen } from "../peers/vendor-sdks/sdks.ts";
import { behave } from "./support/client.ts";
import { counted, errorOf, openSdkWorld, type SdkWorld } from "./support/sdk-cases.ts";
import { rowsOf } from "./support/sdk-rows.ts";
import { A_CHARGE, type SdkHarness, sdkSuite } from "./support/sdk-suite.ts";

// Adyen's library against the example in its dialect. It never retries and mints no keys, so each row shows what the caller
// sees, and what its own retry with the same key comes to.

/** The library speaks TLS only, to Adyen's own host: a key that both sides share stands for a certificate. */
const SHARED = { key: Buffer.alloc(32, 7), identity: "test" };
const PSK = { ciphers: "PSK", maxVersion: "TLSv1.2" } as const;

let world: SdkWorld;
let checkout: InstanceType<typeof adyen.CheckoutAPI>;

beforeAll(async () => {
  world = await openSdkWorld("adyen", { tls: { ...PSK, pskCallback: () => SHARED.key } });
  checkout = api("sk_test_acme");
});

function api(apiKey: string): InstanceType<typeof adyen.CheckoutAPI> {
  const agentOptions: AgentOptions = {
    ...PSK,
    host: "127.0.0.1",
    port: world.proxy.port,
    pskCallback: () => ({ psk: SHARED.key, identity: SHARED.identity }),
    checkServerIdentity: () => undefined,
  };
  // Where the library connects to is no option of its own; what its agent is made with takes precedence.
  const httpClient = Object.assign(new adyen.HttpURLConnectionClient(), { agentOptions });
  const config = new adyen.Config({ apiKey, environment: adyen.EnvironmentEnum.TEST });
  return new adyen.CheckoutAPI(new adyen.Client(config, httpClient));
}

type PaymentRequest = Parameters<typeof checkout.PaymentsApi.payments>[0];

function pay(idempotencyKey?: string, { card = "tok_visa", value = 1_999, by = checkout } = {}) {
  const request: PaymentRequest = {
    merchantAccount: "AcmeCOM",
    reference: "order 7",
    returnUrl: "https://shop.example/",
    amount: { currency: "EUR", value },
    paymentMethod: { type: "scheme", storedPaymentMethodId: card } as never,
  };
  return by.PaymentsApi.payments(request, idempotencyKey === undefined ? {} : { idempotencyKey });
}

const authorised = {
  resultCode: "Authorised",
  pspReference: expect.stringMatching(/^[0-9A-F]{16}$/),
  amount: { currency: "EUR", value: 1_999 },
  merchantReference: "order 7",
};

/** What Adyen's API errors carry beside their fields: whether asking again makes sense. */
const transient = (is: boolean) => ({ "transient-error": String(is) });

const AUTHORISED = "PaymentResponse Authorised";

/** The library never sends anything twice: what a lost connection looks like to its caller. */
const lost = {
  variant: "retried by the caller",
  result: `ApiException, then ${AUTHORISED}`,
  // It looks like an answer of the server's: the library makes up the 500.
  error: (error: unknown) =>
    expect(error).toMatchObject({ name: "ApiException", statusCode: 500, message: "socket hang up" }),
};

const harness: SdkHarness<Awaited<ReturnType<typeof pay>>> = {
  world: () => world,
  pay: (key, content) => pay(key ?? undefined, content === "a" ? {} : { value: 2_000 }),
  keyOf: ({ headers }) => headers["idempotency-key"],
  effects: A_CHARGE,
  accepted(given, { attempts }) {
    expect(given).toMatchObject(authorised);
    const sent = attempts.at(-1);
    expect(sent?.headers.host).toBe("checkout-test.adyen.com");
    // The key's echo says that the request was processed idempotently.
    expect(sent?.answer?.headers["idempotency-key"]).toBe(sent?.headers["idempotency-key"]);
  },
  record: rowsOf({ sdk: "@adyen/api-library", project: "vendor-sdks", profile: "adyen" }),
  rows: {
    first: { result: AUTHORISED },
    cut_before: lost,
    cut_after: lost,
    same_key: { result: AUTHORISED },
    other_content: {
      result: "HttpClientException 422 704",
      error(error) {
        expect(error).toBeInstanceOf(adyen.HttpClientException);
        expect(error).toMatchObject({
          statusCode: 422,
          errorCode: "704",
          apiError: { status: 422, errorType: "validation", pspReference: expect.stringMatching(/^[0-9A-F]{16}$/) },
          responseHeaders: { ...transient(false), "content-type": "application/json" },
        });
      },
    },
    duplicate: { result: AUTHORISED },
    duplicate_long: {
      variant: "longer than it waits",
      result: "HttpClientException 409 704, transient",
      error: (error) =>
        expect(error).toMatchObject({
          statusCode: 409,
          errorCode: "704",
          responseHeaders: { ...transient(true), "retry-after": "1" },
        }),
    },
    store_down: {
      result: "HttpClientException 503 703, transient",
      error: (error) =>
        expect(error).toMatchObject({
          statusCode: 503,
          errorCode: "703",
          apiError: { errorType: "internal" },
          responseHeaders: transient(true),
        }),
    },
  },
};

sdkSuite(harness);

it("a declined card is an answer: Refused, and the same again for the same key", async () => {
  const decline = () => pay("declined", { card: "tok_declined" });
  const { given, effects } = await counted(world, async () => [await decline(), await decline()]);
  expect(given[0]).toMatchObject({ resultCode: "Refused", refusalReasonCode: "2" });
  expect(given[1]).toEqual(given[0]);
  expect(effects).toMatchObject({ charges: 1, authorizations: 1, captures: 0 });
});

it.each([
  {
    what: "the handler's own fault",
    breaks: () => world.lab.sql("ALTER TABLE charges ADD CONSTRAINT fault CHECK (amount_minor <> 4242)"),
    heals: () => world.lab.sql("ALTER TABLE charges DROP CONSTRAINT fault"),
    told: { statusCode: 500, errorCode: "000", apiError: { status: 500, errorType: "internal" } },
  },
  {
    what: "a provider that does not answer",
    breaks: () => behave(world.lab.psp.url, { down: true }),
    heals: () => behave(world.lab.psp.url, { down: false }),
    told: { statusCode: 409, errorCode: "704", apiError: { status: 409, errorType: "validation" } },
  },
])("$what is a transient error: the caller's retry goes on where it stopped", async ({ what, breaks, heals, told }) => {
  const key = what.replaceAll(" ", "-");
  const { given, effects } = await counted(world, async () => {
    await breaks();
    const error = await errorOf(pay(key, { value: 4242 }));
    await heals();
    return { error, later: await pay(key, { value: 4242 }) };
  });
  expect(given.error).toMatchObject({ ...told, responseHeaders: transient(true) });
  expect(given.later).toMatchObject({ resultCode: "Authorised" });
  expect(effects).toMatchObject({ charges: 1, authorizations: 1, captures: 1 });
});

it("who may not ask, and what cannot be read, hear of it in Adyen's words; without a key every call is its own", async () => {
  const { given, executions } = await counted(world, async () => ({
    nobody: await errorOf(pay("nobody", { by: api("sk_test_nobody") })),
    negative: await errorOf(pay("negative", { value: -1 })),
    long: await errorOf(pay("k".repeat(65))),
    keyless: [await pay(), await pay()],
  }));
  expect(given.nobody).toMatchObject({ statusCode: 401, apiError: { errorType: "security" } });
  for (const error of [given.negative, given.long]) {
    expect(error).toMatchObject({ statusCode: 400, errorCode: "702", apiError: { errorType: "validation" } });
  }
  expect(given.keyless).toMatchObject([authorised, authorised]);
  expect(executions).toBe(2);
});
