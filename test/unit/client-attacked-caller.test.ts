import { createClient, memoryStorage } from "oncekey/client";
import { describe, expect, it } from "vitest";
import { clientDesk } from "../support/client-desk.ts";
import { ordersOf, testServer } from "../support/client-orders.ts";

// What a caller may bring, and what it must not lead to.

const server = testServer();
const { order, distinctKeys: keys, leaveOpen } = ordersOf(server);

describe("what the caller brings", () => {
  it("a fetch that repeats by itself: a refused connection at its end says nothing of its tries before", async () => {
    const refused = Object.assign(new Error(), { code: "ECONNREFUSED" });
    const repeating: typeof fetch = async (input, init) => {
      await fetch(input, init);
      throw new TypeError("fetch failed", { cause: refused });
    };
    const { client } = clientDesk({ fetch: repeating, retryWindowMs: 1_000 });
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "unknown", sent: true });
    expect(await client.submit("cart-1", order(200))).toMatchObject({ kind: "in_the_way" });
    expect(keys()).toBe(1);
  });

  it("attemptHeaders that never come: an abort ends the wait, and the submission goes on later", async () => {
    let stuck = true;
    const stop = new AbortController();
    const { client } = clientDesk({
      attemptHeaders: () => {
        if (!stuck) return {};
        queueMicrotask(() => stop.abort());
        return new Promise(() => {});
      },
    });
    expect(await client.submit("cart-1", order(), { signal: stop.signal })).toEqual({ kind: "aborted", sent: false });
    stuck = false;
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "succeeded" });
  });

  it("attemptHeaders that never come: each attempt's time ends, and then the window", async () => {
    const { client, pass } = clientDesk({
      attemptTimeoutMs: 5,
      attemptHeaders: () => {
        pass(60_000);
        return new Promise(() => {});
      },
    });
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "unknown", why: "window_over", sent: false });
    expect(server.arrived).toEqual([]);
  });

  it("an asynchronous listener that fails ends no process", async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on("unhandledRejection", note);
    const onEvent = async () => {
      throw new Error("The listener fails.");
    };
    const client = createClient({ storage: memoryStorage(), onEvent });
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "succeeded" });
    // Node tells of them after the microtasks of a turn.
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });

  it("another header for the key, after a deploy or in a second client: what was sent keeps its own", async () => {
    const { storage } = await leaveOpen({ keyHeader: "X-Request-Key" });
    await clientDesk({ storage, keyHeader: "PayPal-Request-Id" }).client.resume();
    const sent = server.arrived.map(({ headers }) => [headers["x-request-key"], headers["paypal-request-id"]]);
    expect(sent).toEqual(Array(2).fill([(await storage.get("cart-1"))?.key, undefined]));
  });

  it.each(["x-csrf-token", "private-token", "x-client-secret", "x-amz-security-token", "keep-alive", "upgrade"])(
    "no header %s: it would lie in the storage, or no attempt could be made with it",
    async (name) => {
      const submitting = clientDesk().client.submit("cart-1", { ...order(), headers: { [name]: "hidden-value" } });
      await expect(submitting).rejects.toMatchObject({ code: "oncekey_submission_invalid" });
      await expect(submitting).rejects.not.toThrow(/hidden-value/);
    },
  );

  it.each([
    ["form data", new FormData()],
    ["pairs", new URLSearchParams("amount=1")],
    ["a blob", new Blob(["amount"])],
    ["an error", new Error("amount")],
    ["an iterator", [1].values()],
    ["a generator", (function* () {})()],
  ])("no %s as JSON, which would be sent empty", async (_, json) => {
    const submitting = clientDesk().client.submit("cart-1", { url: order().url, json: { order: json } });
    await expect(submitting).rejects.toMatchObject({ code: "oncekey_submission_invalid" });
    expect(server.arrived).toEqual([]);
  });
});
