import { describe, expect, it, vi } from "vitest";
import { answer, cutAfter, cutBefore, hostileServer, type SeenRequest } from "../support/hostile-server.ts";
import { retryingClients } from "../support/retrying-clients.ts";

const V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Everything that goes wrong before an answer comes through; the API does the work at the last of them. */
const troubles = [cutBefore, answer(503), answer(409, { "retry-after": "0" }), cutAfter];
const keysOf = (seen: readonly SeenRequest[]) => seen.map(({ key }) => key);
const distinct = (values: readonly unknown[]) => [...new Set(values)];

describe.each(retryingClients)("a key put on by the hook for $name", ({ send }) => {
  it("is one over all attempts of a call, which carry the same bytes, and the API does it once", async () => {
    const { url, seen, executed, plan } = await hostileServer();
    plan(...troubles);
    const json = { amount: 1200, note: "für Zoë", list: [1, 2.5, null] };
    expect(await send(`${url}/things`, { json })).toBe(201);
    expect(seen).toHaveLength(troubles.length + 1);
    expect(distinct(keysOf(seen))).toEqual([expect.stringMatching(V4)]);
    expect(distinct(seen.map(({ body }) => body))).toHaveLength(1);
    expect(executed).toEqual([JSON.stringify(json)]);
  });

  it("is another one for another call, though it asks for the same", async () => {
    const { url, seen, executed, plan } = await hostileServer();
    for (const _action of [1, 2]) {
      plan(...troubles);
      expect(await send(`${url}/things`, { json: { a: 1 } })).toBe(201);
    }
    expect(distinct(keysOf(seen))).toHaveLength(2);
    expect(executed).toEqual(['{"a":1}', '{"a":1}']);
  });

  it.each(["Idempotency-Key", "IDEMPOTENCY-KEY", "idempotency-key"])(
    "never replaces the caller's own (%s)",
    async (name) => {
      const { url, seen, executed, plan } = await hostileServer();
      plan(...troubles);
      expect(await send(`${url}/things`, { json: { a: 1 }, headers: { [name]: "order-42-of-zoe" } })).toBe(201);
      expect(keysOf(seen)).toEqual([...troubles, 0].map(() => "order-42-of-zoe"));
      expect(executed).toHaveLength(1);
    },
  );

  it("is there from the first attempt on where nothing is ever repeated, and nothing is", async () => {
    const { url, seen, plan } = await hostileServer();
    plan(cutBefore);
    await expect(send(`${url}/things`, { json: { a: 1 } }, { retries: 0 })).rejects.toThrow();
    expect(keysOf(seen)).toEqual([expect.stringMatching(V4)]);
  });

  it("is there where a kept connection turns out dead, and nothing is repeated behind its back", async () => {
    const { url, seen, executed, plan } = await hostileServer();
    expect(await send(`${url}/things`, { json: { a: 1 } })).toBe(201);
    plan(cutBefore);
    await expect(send(`${url}/things`, { json: { a: 2 } }, { retries: 0 })).rejects.toThrow();
    expect(distinct(keysOf(seen))).toEqual([expect.stringMatching(V4), expect.stringMatching(V4)]);
    expect(seen).toHaveLength(2);
    expect(executed).toEqual(['{"a":1}']);
  });

  it("does not follow the clock: made once, from chance, or with the time of the action where that is asked for", async () => {
    const { url, seen, plan } = await hostileServer();
    let clock = Date.now();
    const wall = vi.spyOn(Date, "now").mockImplementation(() => (clock += 3_600_000));
    try {
      for (const keyVersion of [4, 7] as const) {
        plan(...troubles);
        await send(`${url}/things`, { json: { a: keyVersion } }, { keyVersion });
      }
    } finally {
      wall.mockRestore();
    }
    expect(distinct(keysOf(seen))).toEqual([expect.stringMatching(V4), expect.stringMatching(V7)]);
  });

  it.each(["PUT", "PATCH", "DELETE"])("is on %s too", async (method) => {
    const { url, seen, plan } = await hostileServer();
    plan(cutBefore, answer(200));
    expect(await send(`${url}/things`, { method, json: { a: 1 } })).toBe(200);
    expect(distinct(keysOf(seen))).toEqual([expect.stringMatching(V4)]);
  });

  it("is on no GET and no HEAD, and on no method that was left out", async () => {
    const { url, seen, plan } = await hostileServer();
    for (const method of ["GET", "HEAD"]) expect(await send(`${url}/things`, { method })).toBe(200);
    plan(answer(200));
    await send(`${url}/things`, { method: "DELETE" }, { methods: ["post"] });
    expect(keysOf(seen)).toEqual([undefined, undefined, undefined]);
  });

  it("travels in another header where that is asked for", async () => {
    const { url, seen, plan } = await hostileServer();
    plan(cutBefore, answer(200));
    await send(`${url}/things`, { json: { a: 1 } }, { keyHeader: "PayPal-Request-Id" });
    expect(keysOf(seen)).toEqual([undefined, undefined]);
    expect(distinct(seen.map(({ headers }) => headers["paypal-request-id"]))).toEqual([expect.stringMatching(V4)]);
  });
});

/** What each client does with a redirect of a POST by itself; the hooks leave it as it is. */
const followed = {
  fetch: { 301: "GET", 302: "GET", 303: "GET", 307: "POST", 308: "POST" },
  axios: { 301: "GET", 302: "GET", 303: "GET", 307: "POST", 308: "POST" },
  ky: { 301: "GET", 302: "GET", 303: "GET", 307: "POST", 308: "POST" },
  got: { 301: "POST", 302: "POST", 303: "GET", 307: "POST", 308: "POST" },
};

describe.each(retryingClients)("a redirect of a POST by $name", ({ name, send }) => {
  const table = followed[name.split(/[ ,]/)[0] as keyof typeof followed];

  it.each([301, 302, 303, 307, 308] as const)(
    "%i is followed as the client does it, under the same key",
    async (status) => {
      const { url, seen, plan } = await hostileServer();
      plan(answer(status, { location: "/moved" }), answer(200));
      expect(await send(`${url}/things`, { json: { a: 1 } })).toBe(200);
      const [first, second] = seen as [SeenRequest, SeenRequest];
      const sentOn = table[status] === "POST";
      expect(second).toMatchObject({ method: table[status], path: "/moved", key: first.key });
      expect(second.body).toBe(sentOn ? first.body : "");
    },
  );
});
