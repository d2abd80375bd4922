import Stripe from "stripe";
import { beforeAll, expect, it } from "vitest";
import { behave, send } from "./support/client.ts";
import { eventually } from "./support/example.ts";
import { counted, errorOf, openSdkWorld, type SdkWorld } from "./support/sdk-cases.ts";
import { sdkSuite } from "./support/sdk-suite.ts";
import { keysSpanEndpoints, marksOf, type StripeApi, stripeHarness, stripeOn } from "./support/sdks/stripe.ts";

// stripe-node against the example in its dialect, by the API's first version.

let world: SdkWorld;
let stripe: Stripe;

beforeAll(async () => {
  world = await openSdkWorld("stripe");
  stripe = stripeOn(world);
});

const payment = (more: Partial<Stripe.PaymentIntentCreateParams> = {}): Stripe.PaymentIntentCreateParams => ({
  amount: 1_999,
  currency: "eur",
  payment_method: "tok_visa",
  confirm: true,
  metadata: { "order id": "№ 7 & more" },
  ...more,
});

const pay = (options: Stripe.RequestOptions = {}, more: Partial<Stripe.PaymentIntentCreateParams> = {}, by = stripe) =>
  by.paymentIntents.create(payment(more), options);

const succeeded = {
  object: "payment_intent",
  id: expect.stringMatching(/^pi_[0-9a-f]{32}$/),
  latest_charge: expect.stringMatching(/^ch_[0-9a-f]{32}$/),
  amount: 1_999,
  currency: "eur",
  status: "succeeded",
  metadata: { "order id": "№ 7 & more" },
};

const api: StripeApi<Stripe.PaymentIntent> = {
  profile: "stripe",
  object: "PaymentIntent",
  world: () => world,
  pay: (options, content, by) => pay(options, content === "a" ? {} : { amount: 2_000 }, by),
  succeeded,
  contentType: "application/x-www-form-urlencoded",
  inUse: "StripeAPIError",
};

sdkSuite(stripeHarness(api));
keysSpanEndpoints(api);

it("a declined card: StripeCardError with its fields, and the same again for the same key", async () => {
  const once = { idempotencyKey: "declined" };
  const decline = () => errorOf(pay(once, { payment_method: "tok_declined" }));
  const { given, effects, attempts } = await counted(world, async () => [await decline(), await decline()]);
  for (const error of given) {
    expect(error).toBeInstanceOf(Stripe.errors.StripeCardError);
    expect(error).toMatchObject({
      statusCode: 402,
      rawType: "card_error",
      code: "card_declined",
      decline_code: "generic_decline",
      payment_intent: { object: "payment_intent", status: "requires_payment_method", amount: 1_999 },
    });
  }
  expect(effects).toMatchObject({ charges: 1, authorizations: 1, captures: 0 });
  expect(marksOf(attempts)).toEqual([undefined, "true"]);
});

it.each([
  [
    "the handler's own fault",
    () => world.lab.sql("ALTER TABLE charges ADD CONSTRAINT fault CHECK (amount_minor <> 4242)"),
    () => world.lab.sql("ALTER TABLE charges DROP CONSTRAINT fault"),
  ],
  [
    "a provider that does not answer",
    () => behave(world.lab.psp.url, { down: true }),
    () => behave(world.lab.psp.url, { down: false }),
  ],
])("%s is Stripe's 500, not kept: the SDK's retry goes on where it stopped", async (_what, breaks, heals) => {
  const seen = world.proxy.attempts.length;
  const { given, effects, attempts } = await counted(world, async () => {
    await breaks();
    const paying = pay({}, { amount: 4242 });
    await eventually("a first answer", 20_000, () => (world.proxy.attempts[seen]?.answer ?? null) !== null);
    await heals();
    return paying;
  });
  expect(given).toMatchObject({ ...succeeded, amount: 4242 });
  expect(effects).toMatchObject({ charges: 1, authorizations: 1, captures: 1 });
  const fault = attempts[0]?.answer;
  expect(fault).toMatchObject({
    status: 500,
    headers: {
      "content-type": expect.stringMatching(/^application\/json/),
      "stripe-should-retry": "true",
      "request-id": expect.stringMatching(/^req_/),
      "idempotency-key": attempts[0]?.headers["idempotency-key"],
    },
  });
  expect(JSON.parse(fault?.body ?? "")).toMatchObject({ error: { type: "api_error", message: expect.any(String) } });
  expect(attempts.at(-1)?.answer?.status).toBe(200);
});

it("without a key every call is its own; two amounts beyond 2^53 that JavaScript takes for one are two contents", async () => {
  const digits = (amount: string) =>
    send("POST", `${world.api.url}/v1/payment_intents`, {
      key: amount === "none" ? null : "exact",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: `amount=${amount === "none" ? 5 : amount}&currency=eur&source=tok_visa&confirm=true`,
    });
  const { given, executions } = await counted(world, async () => [
    await digits("9007199254740992"),
    await digits("9007199254740993"),
    await digits("none"),
    await digits("none"),
  ]);
  expect(given.map(({ status }) => status)).toEqual([200, 400, 200, 200]);
  expect(given[0]?.text).toContain('"amount":9007199254740992,');
  expect(given[1]?.json()).toMatchObject({ error: { type: "idempotency_error" } });
  expect(executions).toBe(3);
});

it("the common routes speak the dialect too, and the key of one route is taken on the vendor's path", async () => {
  const invoice = { customer_id: "cus_1", amount_minor: 1_999, currency: "EUR" };
  const create = (body: object) => send("POST", `${world.api.url}/v1/invoices`, { key: "common", body });
  const { given, executions } = await counted(world, async () => ({
    first: await create(invoice),
    again: await create(invoice),
    other: await create({ ...invoice, amount_minor: 2_000 }),
    elsewhere: await errorOf(pay({ idempotencyKey: "common" })),
  }));
  expect([given.first.status, given.again.status, given.other.status]).toEqual([201, 201, 400]);
  expect(given.again.text).toBe(given.first.text);
  expect(given.again.headers["idempotent-replayed"]).toBe("true");
  expect(given.other.json()).toMatchObject({ error: { type: "idempotency_error" } });
  expect(given.elsewhere).toBeInstanceOf(Stripe.errors.StripeIdempotencyError);
  expect(executions).toBe(1);
});

it("who may not ask, and what cannot be read, hear of it in Stripe's words", async () => {
  const { given, executions } = await counted(world, async () => [
    await errorOf(stripeOn(world, { apiKey: "sk_test_nobody" }).paymentIntents.create(payment())),
    await errorOf(pay({}, { amount: -1 })),
    await errorOf(pay({}, { confirm: false })),
    await errorOf(pay({ idempotencyKey: "k".repeat(256) })),
  ]);
  expect(given[0]).toBeInstanceOf(Stripe.errors.StripeAuthenticationError);
  for (const error of given.slice(1)) expect(error).toBeInstanceOf(Stripe.errors.StripeInvalidRequestError);
  expect(executions).toBe(0);
});

it("whatever the API does not have, or refuses by itself, is an error to the SDK and never a result", async () => {
  const missing = [stripe.customers.create({ name: "Ada" }), stripe.paymentIntents.retrieve("pi_none")];
  for (const asked of missing) {
    expect(await errorOf(asked)).toMatchObject({ type: "StripeInvalidRequestError", statusCode: 404 });
  }
  const stranger = stripeOn(world, { apiKey: "sk_test_nobody" });
  for (const asked of [stranger.customers.create({}), stranger.charges.list(), stranger.paymentIntents.list()]) {
    expect(await errorOf(Promise.resolve(asked))).toMatchObject({ type: "StripeAuthenticationError", statusCode: 401 });
  }
});
