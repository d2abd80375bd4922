import { created, createOncekey } from "oncekey";
import { idempotent } from "oncekey/fetch";
import { memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";

// Requests that look as if they had no key, or had two: whoever sends them believes himself protected.

const scope = () => ({ tenant: "acme", client: null });
const ID = "6b0b9f9e-7c1a-4c1e-9b1a-0123456789ab";
const OTHER = "6b0b9f9e-7c1a-4c1e-9b1a-0123456789ac";

/** A service in a dialect, with an operation and a captured handler that count their runs. */
async function service(profile: string, requireKey?: boolean) {
  const once = createOncekey({ store: memoryStore(), profile });
  let ran = 0;
  const run = () => created("/things/1", { ran: ++ran });
  const make = once.transaction({ name: "things.make", version: 1, run: async () => run() });
  const wrap = once.capture({ name: "things.wrap", version: 1, maxDurationMs: 1_000, afterCrash: "runAgain" });
  await once.start();
  const binding = { scope, ...(requireKey !== undefined && { requireKey }) };
  const routes = {
    operation: idempotent(make, binding),
    captured: idempotent(wrap, binding, async () => {
      run();
      return new Response(null, { status: 204 });
    }),
  };
  const send = async (route: keyof typeof routes, init: RequestInit, query = "") =>
    (await routes[route](new Request(`http://localhost/things${query}`, { method: "POST", ...init }))).status;
  return { send, ran: () => ran };
}

const json = (body: unknown): RequestInit => ({
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});
const form = (body: string): RequestInit => ({
  headers: { "content-type": "application/x-www-form-urlencoded" },
  body,
});

describe.each(["operation", "captured"] as const)("a key among the members (%s)", (route) => {
  it("is the query's where the body has null in its place", async () => {
    const { send, ran } = await service("google");
    const first = await send(route, json({ requestId: null }), `?requestId=${ID}`);
    expect(await send(route, json({ requestId: null }), `?requestId=${ID}`)).toBe(first);
    expect(ran()).toBe(1);
  });

  it.each<[string, RequestInit]>([
    ["JSON", json({ requestId: OTHER })],
    ["a form", form(`requestId=${OTHER}`)],
    ["JSON, under another name", json({ request_id: OTHER })],
    ["a form, under the same name twice", form(`requestId=${ID}&requestId=${ID}`)],
  ])("is refused in the query and in %s", async (_what, init) => {
    const { send, ran } = await service("google");
    expect(await send(route, init, `?requestId=${ID}`)).toBe(400);
    expect(ran()).toBe(0);
  });
});

describe.each(["operation", "captured"] as const)("a request without a key (%s)", (route) => {
  it("that says when it was first sent is refused", async () => {
    const { send, ran } = await service("azure");
    const headers = { "repeatability-first-sent": new Date().toUTCString() };
    expect(await send(route, { headers })).toBe(400);
    expect(await send(route, {})).toBeLessThan(300);
    expect(ran()).toBe(1);
  });

  it.each(["stripe", "adyen"])("is refused where the route demands one, whatever the method (%s)", async (profile) => {
    const { send, ran } = await service(profile, true);
    expect(await send(route, { method: "DELETE" })).toBe(400);
    const keyed: RequestInit = { method: "DELETE", headers: { "idempotency-key": "k" } };
    expect(await send(route, keyed)).toBe(await send(route, keyed));
    expect(ran()).toBe(1);
  });

  it.each(["stripe", "adyen"])("runs each time with a method whose keys the dialect ignores (%s)", async (profile) => {
    const { send, ran } = await service(profile);
    const keyed: RequestInit = { method: "DELETE", headers: { "idempotency-key": "k" } };
    await send(route, keyed);
    await send(route, keyed);
    expect(ran()).toBe(2);
  });
});
