import { createClient, memoryStorage } from "oncekey/client";
import { describe, expect, it } from "vitest";
import { clientDesk } from "../support/client-desk.ts";
import { clientOrders, done, html } from "../support/client-orders.ts";
import { cut, json, problem, type Reply, startClientServer, text } from "../support/client-server.ts";

const orders = clientOrders();
const { submitTo, expectOneKey } = orders;

describe("final refusals", () => {
  const cases: readonly (readonly [string, Reply, object])[] = [
    ["422", json(422, { code: "limit_reached" }), { retry: "new_key", code: "limit_reached" }],
    ["400", json(400, {}), { retry: "new_key", code: null }],
    [
      "402 with another vendor's code",
      json(402, { error: { code: "card_declined" } }),
      { retry: "new_key", code: "card_declined" },
    ],
    ["404 with a page", html(404), { retry: "new_key", code: null }],
    ["409 of the business", json(409, { code: "already_paid" }), { retry: "new_key", code: "already_paid" }],
    ["401", json(401, {}), { retry: "same_key", code: null }],
    ["403", json(403, {}), { retry: "same_key", code: null }],
    ["a mismatch", problem(422, "idempotency_payload_mismatch", "new_key"), { retry: "new_key" }],
    ["a missing answer", problem(409, "idempotency_response_unavailable", "never"), { retry: "never" }],
    ["an invalid request of ours", problem(400, "idempotency_request_invalid", "same_key"), { retry: "same_key" }],
    ["a body too large", problem(413, "idempotency_request_too_large", "same_key"), { retry: "same_key" }],
    ["429 with Stripe-Should-Retry: false", json(429, {}, { "stripe-should-retry": "false" }), { retry: "same_key" }],
    [
      "advice of a problem that is not ours",
      json(422, { code: "x", retry: "same_key" }),
      { retry: "new_key", code: "x" },
    ],
    [
      "JSON that is none",
      text(422, "{", { "content-type": "application/json", "content-length": "1" }),
      { code: null },
    ],
    ["JSON that is null", json(422, null), { code: null, retry: "new_key" }],
  ];
  it.each(cases)("%s", async (_, reply, expected) => {
    const desk = clientDesk();
    const result = await submitTo([reply], desk);
    expect(result).toMatchObject({ kind: "refused", replayed: false, certain: true, ...expected });
    expectOneKey(1);
    // What is read from the storage later says the same.
    expect(await (await desk.client.find("cart-1"))?.send()).toMatchObject({ kind: "refused", ...expected });
  });

  it("say whether they are a replay, as a success does", async () => {
    const replayed = { "idempotent-replayed": "true" };
    expect(await submitTo([json(402, {}, replayed)])).toMatchObject({ kind: "refused", replayed: true });
    expect(await submitTo([json(201, {}, replayed)])).toMatchObject({ kind: "succeeded", replayed: true });
  });

  it("are not certain after a lost answer where they do not tell of it, and then another request stays in the way", async () => {
    const desk = clientDesk();
    expect(await submitTo([cut, json(401, {})], desk)).toMatchObject({
      kind: "refused",
      retry: "same_key",
      certain: false,
    });
    expect((await desk.client.pending()).map(({ sent }) => sent)).toEqual([true]);
    const edited = { url: `${orders.server.url}/v1/charges`, json: { amount: 2 } };
    expect(await desk.client.submit("cart-1", edited)).toMatchObject({ kind: "in_the_way", settled: false });
    orders.server.replies = [json(201, {}, { "idempotent-replayed": "true" })];
    expect([...(await desk.client.resume()).values()]).toMatchObject([{ kind: "succeeded", replayed: true }]);
    expectOneKey(3);
  });

  const telling: readonly (readonly [string, Reply, boolean])[] = [
    ["403", json(403, {}), false],
    ["404", json(404, {}), false],
    ["404 that is a replay", json(404, {}, { "idempotent-replayed": "true" }), true],
    ["a mismatch", problem(422, "idempotency_payload_mismatch", "new_key"), false],
    ["a refusal of the business", json(402, { code: "card_declined" }), true],
    ["422", json(422, {}), true],
  ];
  it.each(telling)("after a lost answer: %s is certain: %s", async (_, reply, certain) => {
    expect(await submitTo([cut, reply])).toMatchObject({ kind: "refused", certain });
  });
});

describe("no one knows", () => {
  it.each([301, 302, 303, 307, 308])("after a redirect (%i), which is not followed", async (status) => {
    const elsewhere = await startClientServer();
    const desk = clientDesk();
    const result = await submitTo([text(status, "", { location: `${elsewhere.url}/login` })], desk);
    expect(result).toEqual({ kind: "unknown", why: "redirected", response: null, sent: true });
    expect([orders.server.arrived.length, elsewhere.arrived.length]).toEqual([1, 0]);
    expect(await desk.client.pending()).toHaveLength(1);
    await elsewhere.close();
  });

  it("after a redirect as browsers show it, and after one that a fetch of the caller's followed", async () => {
    const opaque = Object.defineProperties(Response.error(), { type: { value: "opaqueredirect" } });
    const followed = Object.defineProperties(new Response("{}"), { redirected: { value: true } });
    for (const response of [opaque, followed]) {
      const result = await submitTo([], clientDesk({ fetch: async () => response }));
      expect(result).toMatchObject({ kind: "unknown", why: "redirected" });
    }
  });

  it("after a page where an API was asked; its answer is shown", async () => {
    const result = await submitTo([html(200)]);
    expect(result).toMatchObject({ kind: "unknown", why: "not_understood", sent: true, response: { status: 200 } });
    expect(result.kind === "unknown" && result.response?.text()).toBe("<h1>Hello</h1>");
    expectOneKey(1);
  });

  it("unless HTML was asked for, or there is no body", async () => {
    expect(await submitTo([html(200)], clientDesk(), { headers: { accept: "text/html" } })).toMatchObject({
      kind: "succeeded",
    });
    const empty = text(201, "", { "content-type": "text/html" });
    expect(await submitTo([empty])).toMatchObject({ kind: "succeeded" });
    expect(await submitTo([(response) => response.writeHead(204).end()])).toMatchObject({ kind: "succeeded" });
  });

  it("after a problem that comes with 200", async () => {
    expect(await submitTo([problem(200, "idempotency_in_progress", "same_key")])).toMatchObject({
      kind: "unknown",
      why: "not_understood",
    });
  });

  it("after a server error that the server will repeat for ever", async () => {
    const desk = clientDesk();
    const stored = json(500, {}, { "stripe-should-retry": "false", "idempotent-replayed": "true" });
    expect(await submitTo([stored], desk)).toMatchObject({ kind: "unknown", why: "in_the_dark", sent: true });
    expectOneKey(1);
    expect(await desk.client.pending()).toHaveLength(1);
  });
});

describe("informational answers", () => {
  it("are passed over", async () => {
    const reply: Reply = (response, ...rest) => {
      response.writeProcessing();
      response.writeEarlyHints({ link: "</x>; rel=preload" });
      return done(response, ...rest);
    };
    expect(await submitTo([reply])).toMatchObject({ kind: "succeeded" });
  });
});

describe("without a network", () => {
  it("no attempt is made until it is back", async () => {
    const network = new EventTarget();
    const page = globalThis as { addEventListener?: unknown; removeEventListener?: unknown };
    const platform = Object.getOwnPropertyDescriptor(globalThis, "navigator");
    let onLine = false;
    Object.defineProperty(globalThis, "navigator", {
      configurable: true,
      value: {
        get onLine() {
          return onLine;
        },
      },
    });
    page.addEventListener = network.addEventListener.bind(network);
    page.removeEventListener = network.removeEventListener.bind(network);
    try {
      const kinds: string[] = [];
      const client = createClient({
        storage: memoryStorage(),
        onEvent: (event) => {
          kinds.push(event.kind === "pause" ? event.why : event.kind);
          if (event.kind !== "pause") return;
          expect(orders.server.arrived).toEqual([]);
          onLine = true;
          setImmediate(() => network.dispatchEvent(new Event("online")));
        },
      });
      expect(await client.submit("cart-1", { url: orders.server.url, json: 1 })).toMatchObject({ kind: "succeeded" });
      expect(kinds).toEqual(["created", "offline", "attempt", "ended"]);
    } finally {
      delete page.addEventListener;
      delete page.removeEventListener;
      if (platform === undefined) delete (globalThis as { navigator?: unknown }).navigator;
      else Object.defineProperty(globalThis, "navigator", platform);
    }
  });
});
