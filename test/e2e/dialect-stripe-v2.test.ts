import Stripe from "stripe";
import { beforeAll, expect, it } from "vitest";
import { counted, errorOf, openSdkWorld, type SdkWorld } from "./support/sdk-cases.ts";
import { sdkSuite } from "./support/sdk-suite.ts";
import { keysSpanEndpoints, marksOf, type StripeApi, stripeHarness, stripeOn } from "./support/sdks/stripe.ts";

// stripe-node against the example in the dialect of API v2: JSON, and a failure runs again under its key. The path is none
// that this SDK has a method for, so it goes through `rawRequest`, which decides by the path that it is v2.

let world: SdkWorld;
let stripe: Stripe;

beforeAll(async () => {
  world = await openSdkWorld("stripe-v2");
  stripe = stripeOn(world);
});

interface OffSessionPayment {
  readonly object: string;
  readonly status: string;
}

async function pay(options: Stripe.RawRequestOptions = {}, more: object = {}, by = stripe) {
  const amount = { value: 1_999, currency: "eur" };
  const body = { amount, payment_method: "tok_visa", metadata: { order: "7" }, ...more };
  const made = await by.rawRequest("POST", "/v2/payments/off_session_payments", body, options);
  return made as Stripe.Response<OffSessionPayment>;
}

const succeeded = {
  object: "v2.payments.off_session_payment",
  id: expect.stringMatching(/^osp_[0-9a-f]{32}$/),
  amount_requested: { value: 1_999, currency: "eur" },
  status: "succeeded",
  metadata: { order: "7" },
};

const api: StripeApi<OffSessionPayment> = {
  profile: "stripe-v2",
  object: "OffSessionPayment",
  world: () => world,
  pay: (options, content, by) => pay(options, content === "a" ? {} : { metadata: { order: "8" } }, by),
  succeeded,
  contentType: "application/json",
  // The class of a mismatch too: told apart by code and status.
  inUse: "StripeIdempotencyError",
};
const harness = stripeHarness(api);

sdkSuite(harness);
keysSpanEndpoints(api);

it("what failed runs again under its key, with other content too, and is answered anew; what succeeded does not", async () => {
  const once = { idempotencyKey: "second-try" };
  const decline = () => errorOf(pay(once, { payment_method: "tok_declined" }));
  const { given, effects, attempts } = await counted(world, async () => [await decline(), await decline()]);
  for (const error of given) {
    expect(error).toBeInstanceOf(Stripe.errors.StripeCardError);
    expect(error).toMatchObject({ statusCode: 402, code: "card_declined", decline_code: "generic_decline" });
  }
  expect(effects).toMatchObject({ charges: 2, authorizations: 2, captures: 0 });
  const charges = attempts.map(({ answer }) => JSON.parse(answer?.body ?? "").error.charge);
  expect(new Set(charges).size).toBe(2);
  expect(marksOf(attempts)).toEqual([undefined, undefined]);
  harness.record({
    case: "same_key",
    variant: "after a failure",
    attempts: 2,
    executions: effects.charges,
    result: "StripeCardError 402, a new one each time",
  });
  const later = await counted(world, async () => [await pay(once), await pay(once)]);
  expect(later.given).toMatchObject([succeeded, succeeded]);
  expect(marksOf(later.attempts)).toEqual([undefined, "true"]);
  expect(later.executions).toBe(1);
});
