import { type ClientErrorCode, createOncekey, type OncekeyOptions, respond } from "oncekey";
import { idempotent } from "oncekey/fetch";
import { type MemoryTransaction, memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import { paypal } from "../../src/http/profiles/paypal.ts";
import { problemAnswer } from "../../src/http/refusal.ts";

const asked = { method: "POST", target: "/", key: "k", requestId: "0a1b2c3d-4e5f-4a6b-8c7d-0123456789ab" };
const codes = Object.keys(paypal.refusals) as ClientErrorCode[];

function refusal(code: ClientErrorCode, retryAfterMs?: number) {
  const { status, headers, body } = problemAnswer(
    paypal,
    { code, detail: "What to do.", state: "none", retryAfterMs },
    asked,
  );
  return { status, headers: Object.fromEntries(headers), body: JSON.parse(Buffer.from(body as Uint8Array).toString()) };
}

describe("PayPal's refusals", () => {
  for (const code of codes) {
    it(`are errors of PayPal's form: ${code}`, () => {
      const { status, headers, body } = refusal(code);
      expect(headers).toMatchObject({ "content-type": "application/json", "paypal-debug-id": "0a1b2c3d4e5f4" });
      expect(body).toEqual({
        name: expect.stringMatching(/^[A-Z_]+$/),
        message: expect.stringMatching(/\.$/),
        debug_id: "0a1b2c3d4e5f4",
        details: [{ issue: expect.stringMatching(/^[A-Z_]+$/), description: "What to do." }],
        links: [],
      });
      // The SDK retries 413 and every listed 5xx by itself, and anything with Retry-After.
      expect(status).not.toBe(413);
      expect(status).toBeGreaterThanOrEqual(400);
    });
  }

  it("ask to come back only where the same request may give another answer", () => {
    expect(refusal("idempotency_in_progress", 1_500).headers["retry-after"]).toBe("2");
    expect(refusal("idempotency_response_unavailable").headers).not.toHaveProperty("retry-after");
  });
});

/** An operation over a memory store, bound to the Fetch interface, and how to ask it. */
async function service(options: Partial<OncekeyOptions<MemoryTransaction>> = {}, requireKey?: boolean) {
  const once = createOncekey({ store: memoryStore(), profile: "paypal", ...options });
  let runs = 0;
  const run = async () => respond(201, JSON.stringify({ run: ++runs }), { "content-type": "application/json" });
  const binding = { scope: () => ({ tenant: "acme", client: null }), ...(requireKey !== undefined && { requireKey }) };
  const handle = idempotent(once.transaction({ name: "orders.create", version: 1, run }), binding);
  await once.start();
  return (headers: Record<string, string>) =>
    handle(new Request("http://localhost/v2/checkout/orders", { method: "POST", headers }));
}

describe("PayPal's profile", () => {
  it("names every attempt, also a replay, by a debug id of its own", async () => {
    const ask = await service();
    const answers = [await ask({ "paypal-request-id": "k" }), await ask({ "paypal-request-id": "k" })];
    const ids = answers.map(({ headers }) => headers.get("paypal-debug-id"));
    expect(ids[0]).toMatch(/^[0-9a-f]{13}$/);
    expect(ids[1]).toMatch(/^[0-9a-f]{13}$/);
    expect(ids[1]).not.toBe(ids[0]);
    expect(await answers[1]?.text()).toBe(await answers[0]?.text());
  });

  it("has no sign of a replay", async () => {
    const ask = await service();
    const names = async () => [...(await ask({ "paypal-request-id": "k" })).headers.keys()];
    expect(await names()).toEqual(await names());
  });

  it("takes 108 characters, not 109; an instance may allow more", async () => {
    const ask = await service();
    expect((await ask({ "paypal-request-id": "k".repeat(108) })).status).toBe(201);
    expect((await ask({ "paypal-request-id": "k".repeat(109) })).status).toBe(400);
    const payouts = await service({ maxKeyLength: 512 });
    expect((await payouts({ "paypal-request-id": "k".repeat(512) })).status).toBe(201);
  });

  it("needs no key, unless the route does", async () => {
    const free = await service();
    expect([(await free({})).status, (await free({})).status]).toEqual([201, 201]);
    const bound = await service({}, true);
    const missing = await bound({});
    expect(missing.status).toBe(400);
    expect(await missing.json()).toMatchObject({ details: [{ issue: "PAYPAL_REQUEST_ID_REQUIRED" }] });
  });

  it("does not read the key of another dialect", async () => {
    const ask = await service({}, true);
    expect((await ask({ "idempotency-key": "k" })).status).toBe(400);
  });

  it("keeps orders six hours", async () => {
    const ask = await service({ publishRetention: true });
    expect((await ask({ "paypal-request-id": "k" })).headers.get("idempotency-retention")).toBe("21600");
  });
});
