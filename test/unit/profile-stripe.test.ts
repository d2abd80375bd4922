import { type ClientErrorCode, codes, createOncekey } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import type { Outcome } from "../../src/core/outcome.ts";
import type { Answer } from "../../src/http/exchange.ts";
import { bind } from "../../src/http/gate.ts";
import { stripe } from "../../src/http/profiles/stripe.ts";
import { stripeV2 } from "../../src/http/profiles/stripe-v2.ts";
import { problemAnswer } from "../../src/http/refusal.ts";
import { exchangeOf, headerOf, textOf } from "../../src/testing/profile-harness.ts";

const clientCodes = Object.entries(codes).flatMap(([code, { audience }]) =>
  audience === "client" ? [code as ClientErrorCode] : [],
);
const asked = { method: "POST", target: "/v1/charges", key: "k", requestId: "6ba7b810-9dad-41d1-80b4-00c04fd430c8" };

/** Whether Stripe's SDKs send the request again: the header decides, else 409 and 5xx. */
function isRetried(answer: Answer): boolean {
  const said = headerOf(answer, "stripe-should-retry");
  return said === undefined ? answer.status === 409 || answer.status >= 500 : said === "true";
}

/** What the first request needs changed, not repeated, though its key stays good. */
const CORRECTED = new Set<ClientErrorCode>([
  "idempotency_request_invalid",
  "idempotency_request_too_large",
  "idempotency_request_unsupported",
  "idempotency_forbidden",
]);

describe.each([stripe, stripeV2])("every refusal of $name", (profile) => {
  it.each(clientCodes)("%s is an error object, and sent again by the SDKs exactly where that is the advice", (code) => {
    const answer = problemAnswer(profile, { code, detail: "What happened.", state: "none" }, asked);
    expect(headerOf(answer, "content-type")).toBe("application/json");
    expect(headerOf(answer, "request-id")).toBe("req_6ba7b8109dad41");
    expect(headerOf(answer, "idempotency-key")).toBe("k");
    // An answer without this object counts as a success for them, whatever its status is.
    expect(JSON.parse(textOf(answer))).toMatchObject({
      error: { type: expect.stringMatching(/_error$/), message: expect.any(String) },
    });
    expect(isRetried(answer)).toBe(
      codes[code].audience === "client" && codes[code].retry === "same_key" && !CORRECTED.has(code),
    );
  });

  it("keeps what may have been done from reading as if nothing had: those clients take a new key after another 4xx", () => {
    for (const code of ["idempotency_response_unavailable", "idempotency_retry_too_late"] as const) {
      expect(profile.refusals[code]).toMatchObject({ status: 409, error: code });
    }
    expect(profile.refusals.idempotency_outcome_unknown.status).toBe(500);
  });

  it("says that a key is unknown where it was not read", () => {
    const row = profile.refusals.idempotency_payload_mismatch;
    expect(row.message?.({ ...asked, key: null })).toMatch(/^The idempotency key was first used/);
    expect(
      problemAnswer(profile, { code: "idempotency_key_invalid", detail: "", state: "none" }, { ...asked, key: null })
        .headers,
    ).not.toContainEqual(["idempotency-key", expect.anything()]);
  });
});

/** A captured handler on a route of the profile, over a memory store. */
async function captured(profile: string, outcome: Outcome) {
  let runs = 0;
  const once = createOncekey({ store: memoryStore(), profile, waitMs: 0, onError: () => {} });
  const gate = bind(once.capture({ name: "things.delete", version: 1, maxDurationMs: 1_000 }), {
    scope: () => ({ tenant: "acme", client: null }),
  });
  await once.start();
  return {
    runs: () => runs,
    async send(method: string) {
      const headers = { "idempotency-key": "k" };
      const handled = await gate.capture(exchangeOf({ method, headers, body: "" }), async () => {
        runs++;
        return outcome;
      });
      return handled;
    },
    async answer() {
      const handled = await this.send("POST");
      if (handled.kind === "pass") throw new Error("The key was ignored.");
      const own = handled.kind === "handler" ? handled.head.add : handled.answer.headers;
      return { status: handled.answer.status, retry: own.find(([name]) => name === "stripe-should-retry")?.[1] };
    },
  };
}

const failed = (status: number, headers: Outcome["headers"] = []): Outcome => ({
  status,
  headers,
  body: new TextEncoder().encode("{}"),
});

describe("a handler that fails, in the stripe profile", () => {
  it.each([500, 502, 503])("%i is kept, and its replay tells the SDKs to stop", async (status) => {
    const route = await captured("stripe", failed(status));
    const first = await route.answer();
    expect(first).toEqual({ status, retry: "false" });
    expect(await route.answer()).toEqual({ status, retry: "false" });
    expect(route.runs()).toBe(1);
  });

  it("503 with Retry-After has not begun: nothing is kept, and the SDKs are told to come back", async () => {
    const route = await captured("stripe", failed(503, [["retry-after", "1"]]));
    expect(await route.answer()).toEqual({ status: 503, retry: "true" });
    expect(await route.answer()).toEqual({ status: 503, retry: "true" });
    expect(route.runs()).toBe(2);
  });

  it("a refusal of its own is kept without a word about trying again", async () => {
    const route = await captured("stripe", failed(402));
    expect(await route.answer()).toEqual({ status: 402, retry: undefined });
    expect(await route.answer()).toEqual({ status: 402, retry: undefined });
    expect(route.runs()).toBe(1);
  });
});

describe("what is different in v2", () => {
  it("what a failed handler did is asked about again, not replayed", async () => {
    const route = await captured("stripe-v2", failed(500));
    expect(await route.answer()).toEqual({ status: 500, retry: undefined });
    expect(await route.answer()).toEqual({ status: 500, retry: "true" });
    expect(route.runs()).toBe(1);
  });

  it("a refusal is forgotten, and its request runs again", async () => {
    const route = await captured("stripe-v2", failed(402));
    expect(await route.answer()).toEqual({ status: 402, retry: undefined });
    expect(await route.answer()).toEqual({ status: 402, retry: undefined });
    expect(route.runs()).toBe(2);
  });

  it("DELETE has keys, which v1 ignores on it", async () => {
    const [v1, v2] = [await captured("stripe", failed(200)), await captured("stripe-v2", failed(200))];
    expect([(await v1.send("DELETE")).kind, (await v1.send("DELETE")).kind]).toEqual(["pass", "pass"]);
    expect([(await v2.send("DELETE")).kind, (await v2.send("DELETE")).kind]).toEqual(["handler", "answer"]);
    expect(v2.runs()).toBe(1);
  });
});
