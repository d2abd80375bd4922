import Stripe from "stripe";
import { expect, it } from "vitest";
import { counted, errorOf, type SdkWorld } from "../sdk-cases.ts";
import type { SdkAttempt } from "../sdk-proxy.ts";
import { type RowOfRun, rowsOf } from "../sdk-rows.ts";
import { A_CHARGE, type SdkHarness } from "../sdk-suite.ts";

/** stripe-node on a world's proxy. */
export function stripeOn(
  { proxy }: SdkWorld,
  { apiKey = "sk_test_acme", ...config }: Readonly<{ apiKey?: string; maxNetworkRetries?: number }> = {},
): Stripe {
  return new Stripe(apiKey, { protocol: "http", host: "127.0.0.1", port: proxy.port, ...config });
}

/** One of Stripe's two APIs, and what a payment by it looks like. */
export interface StripeApi<Paid> {
  readonly profile: "stripe" | "stripe-v2";
  /** The object's name in the table. */
  readonly object: string;
  world(): SdkWorld;
  pay(options: Stripe.RequestOptions, content: "a" | "b", by?: Stripe): Promise<Stripe.Response<Paid>>;
  /** A payment that succeeded. */
  readonly succeeded: object;
  readonly contentType: string;
  /** The class of the error about a first that still runs. */
  readonly inUse: "StripeAPIError" | "StripeIdempotencyError";
}

const keyOf = ({ headers }: SdkAttempt) => headers["idempotency-key"];
const markOf = (headers: Readonly<Record<string, unknown>> | undefined) => headers?.["idempotent-replayed"];

/**
 * stripe-node, as it goes through every case. It sends a key of its own with every POST, and sends it again with each retry
 * of its own; it comes back after a lost connection, a 409 and a 503.
 */
export function stripeHarness<Paid>(api: StripeApi<Paid>): SdkHarness<Stripe.Response<Paid>> {
  const { object, inUse, world } = api;
  return {
    world,
    pay: (idempotencyKey, content) => api.pay(idempotencyKey === null ? {} : { idempotencyKey }, content),
    minted: /^stripe-node-retry-/,
    keyOf,
    effects: A_CHARGE,
    accepted(given, { attempts, replayed }) {
      expect(given).toMatchObject(api.succeeded);
      const sent = attempts.at(-1);
      expect(sent?.headers["content-type"]).toBe(api.contentType);
      expect(given.lastResponse).toMatchObject({ statusCode: 200, idempotencyKey: sent && keyOf(sent) });
      expect(given.lastResponse.requestId).toMatch(/^req_[0-9a-f]{14}$/);
      expect(markOf(given.lastResponse.headers)).toBe(replayed ? "true" : undefined);
    },
    requestIdOf: ({ lastResponse }) => lastResponse.requestId,
    record: rowsOf({ sdk: "stripe", profile: api.profile }),
    rows: {
      first: { result: `${object} succeeded` },
      cut_before: { result: `${object} succeeded, not replayed` },
      cut_after: { result: `${object} succeeded, replayed` },
      same_key: { result: `${object} succeeded, replayed` },
      other_content: { variant: "other parameters", result: MISMATCH, error: expectMismatch },
      duplicate: { result: `${object} succeeded, replayed` },
      duplicate_long: {
        variant: "longer than it waits",
        result: `${inUse} 409 idempotency_key_in_use`,
        requests: 2,
        // It would go on asking for longer than the test's first call runs.
        pay: (idempotencyKey) => api.pay({ idempotencyKey }, "a", stripeOn(world(), { maxNetworkRetries: 1 })),
        error: (error) => expectInUse(error, inUse),
      },
      store_down: { result: "StripeAPIError 503", requests: 3, error: expectUnavailable },
    },
  };
}

const MISMATCH = "StripeIdempotencyError 400";

function expectMismatch(error: unknown, { key }: { readonly key: string | null }): void {
  expect(error).toBeInstanceOf(Stripe.errors.StripeIdempotencyError);
  expect(error).toMatchObject({
    statusCode: 400,
    rawType: "idempotency_error",
    code: undefined,
    message: expect.stringContaining(`'${key}'`),
    requestId: expect.stringMatching(/^req_/),
  });
}

function expectInUse(error: unknown, name: StripeApi<unknown>["inUse"]): void {
  expect(error).toBeInstanceOf(Stripe.errors[name]);
  expect(error).toMatchObject({
    statusCode: 409,
    rawType: "idempotency_error",
    code: "idempotency_key_in_use",
    headers: { "stripe-should-retry": "true", "retry-after": "1" },
  });
}

function expectUnavailable(error: unknown): void {
  expect(error).toBeInstanceOf(Stripe.errors.StripeAPIError);
  expect(error).toMatchObject({
    statusCode: 503,
    rawType: "api_error",
    headers: { "stripe-should-retry": "true" },
  });
}

/** In both APIs a key is the account's: another endpoint is other content. */
export function keysSpanEndpoints<Paid>({ world, pay, profile }: StripeApi<Paid>): void {
  it("same key, another endpoint: StripeIdempotencyError, and nothing runs", async () => {
    const once = { idempotencyKey: "taken-another-endpoint" };
    await pay(once, "a");
    const { given, executions, attempts } = await counted(world(), () =>
      errorOf(stripeOn(world()).rawRequest("POST", "/v1/invoices", { customer_id: "c" }, once)),
    );
    expectMismatch(given, { key: once.idempotencyKey });
    expect([attempts.length, executions]).toEqual([1, 0]);
    const row: RowOfRun = {
      case: "other_content",
      variant: "another endpoint",
      attempts: 1,
      executions,
      result: MISMATCH,
    };
    rowsOf({ sdk: "stripe", profile })(row);
  });
}

/** Whether each answer says that it is a replay. */
export const marksOf = (attempts: readonly SdkAttempt[]) => attempts.map(({ answer }) => markOf(answer?.headers));
