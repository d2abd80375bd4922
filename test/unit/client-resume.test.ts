import { type Client, createClient, memoryStorage } from "oncekey/client";
import { describe, expect, it } from "vitest";
import { clientDesk } from "../support/client-desk.ts";
import { ordersOf, testServer } from "../support/client-orders.ts";
import { json, silence, until } from "../support/client-server.ts";

const server = testServer();
const { order, keys } = ordersOf(server);
const distinct = (list: readonly unknown[]) => new Set(list).size;

describe("abort", () => {
  it("keeps the submission, whose next send goes on with its key", async () => {
    server.replies = [silence, json(201, {})];
    const { client } = clientDesk();
    const stop = new AbortController();
    const sending = client.submit("cart-1", order(), { signal: stop.signal });
    await until(() => server.arrived.length === 1);
    stop.abort();
    expect(await sending).toEqual({ kind: "aborted", sent: true });
    const [pending] = await client.pending();
    expect(pending).toMatchObject({ name: "cart-1", sent: true });
    expect(await pending?.send()).toMatchObject({ kind: "succeeded" });
    expect(distinct(keys())).toBe(1);
  });

  it("sends nothing where it came first", async () => {
    const { client } = clientDesk();
    expect(await client.submit("cart-1", order(), { signal: AbortSignal.abort() })).toEqual({
      kind: "aborted",
      sent: false,
    });
    expect(server.arrived).toEqual([]);
    expect(await client.pending()).toEqual([]);
  });

  it("ends a pause at once", async () => {
    server.replies = [json(503, {}, { "retry-after": "20" })];
    const stop = new AbortController();
    const client = createClient({
      storage: memoryStorage(),
      onEvent: ({ kind }) => kind === "pause" && stop.abort(),
    });
    expect(await client.submit("cart-1", order(), { signal: stop.signal })).toEqual({ kind: "aborted", sent: true });
    expect(server.arrived).toHaveLength(1);
  });

  it("of one click leaves the submission to the other, with the same key", async () => {
    server.replies = [silence, json(201, {})];
    const { client } = clientDesk();
    const stop = new AbortController();
    const first = client.submit("cart-1", order(), { signal: stop.signal });
    await until(() => server.arrived.length === 1);
    const second = client.submit("cart-1", order());
    stop.abort();
    expect(await first).toEqual({ kind: "aborted", sent: true });
    expect(await second).toMatchObject({ kind: "succeeded" });
    expect(server.arrived).toHaveLength(2);
    expect(distinct(keys())).toBe(1);
  });

  it("of a wait for another tab ends the wait", async () => {
    server.replies = [silence];
    const storage = memoryStorage();
    const [first, second] = [clientDesk({ storage }), clientDesk({ storage })];
    const stop = new AbortController();
    const sending = first.client.submit("cart-1", order(), { signal: stop.signal });
    await until(() => server.arrived.length === 1);
    const mine = new AbortController();
    const waiting = second.client.submit("cart-1", order(), { signal: mine.signal });
    await until(() => second.told().includes("waiting_for_other"));
    mine.abort();
    expect(await waiting).toMatchObject({ kind: "aborted" });
    stop.abort();
    expect(await sending).toMatchObject({ kind: "aborted", sent: true });
  });
});

describe("resume", () => {
  const abandon = async (client: Client, ...names: string[]) => {
    const stop = new AbortController();
    server.replies = [silence];
    const sent = server.arrived.length;
    const sendings = names.map((name, at) => client.submit(name, order(at), { signal: stop.signal }));
    await until(() => server.arrived.length === sent + names.length);
    stop.abort();
    await Promise.all(sendings);
  };

  it("sends what is pending after a restart, with the keys it had, and tells what became of each", async () => {
    const { client, storage } = clientDesk();
    await abandon(client, "cart-1", "cart-2");
    const before = keys();
    server.replies = [json(422, { code: "sold_out" }), json(201, {})];
    const restarted = clientDesk({ storage });
    expect((await restarted.client.pending()).map(({ name, sent }) => [name, sent])).toEqual([
      ["cart-1", true],
      ["cart-2", true],
    ]);
    const results = await restarted.client.resume();
    expect([...results.keys()].sort()).toEqual(["cart-1", "cart-2"]);
    expect([...results.values()].map(({ kind }) => kind).sort()).toEqual(["refused", "succeeded"]);
    expect(keys().slice(2).sort()).toEqual(before.sort());
    expect(await restarted.client.pending()).toEqual([]);
    expect((await restarted.client.resume()).size).toBe(0);
  });

  it("sends every one of many, each once", async () => {
    const { client, storage } = clientDesk();
    const names = Array.from({ length: 20 }, (_, at) => `cart-${at}`);
    for (const name of names) await client.submission(name, order());
    const results = await clientDesk({ storage }).client.resume();
    expect([...results.keys()].sort()).toEqual(names.sort());
    expect(distinct(keys())).toBe(20);
    expect(server.arrived).toHaveLength(20);
  });

  it("is aborted as a whole, and keeps all", async () => {
    const { client } = clientDesk();
    await abandon(client, "cart-1", "cart-2");
    const stop = new AbortController();
    const resuming = client.resume({ signal: stop.signal });
    await until(() => server.arrived.length === 4);
    stop.abort();
    expect([...(await resuming).values()].map(({ kind }) => kind)).toEqual(["aborted", "aborted"]);
    expect(await client.pending()).toHaveLength(2);
  });
});

describe("events", () => {
  it("hold no key, body or header, and a listener that throws disturbs nothing", async () => {
    const texts: string[] = [];
    server.replies = [json(503, {}), json(201, { secret: "answer" }, { "x-secret": "header" })];
    const { client, storage } = clientDesk({
      onEvent: (event) => {
        texts.push(JSON.stringify(event));
        throw new Error("a bug of the page");
      },
    });
    const request = { url: `${server.url}/x`, json: { secret: "body" }, headers: { "x-own": "secret" } };
    expect(await client.submit("cart-1", request)).toMatchObject({ kind: "succeeded" });
    expect(texts.join()).not.toMatch(/secret/);
    expect(texts.join()).not.toContain((await storage.get("cart-1"))?.key);
    expect(texts.length).toBeGreaterThan(4);
  });
});

describe("options", () => {
  it("refuse a name that no header can have, before anything is kept", () => {
    expect(() => createClient({ storage: memoryStorage(), keyHeader: "a b" })).toThrow(TypeError);
    expect(() => createClient({ storage: memoryStorage(), firstSentHeader: "" })).toThrow(TypeError);
  });

  const bad = [
    ["storage", { storage: {} }],
    ["retryWindowMs", { retryWindowMs: Number.NaN }],
    ["attemptTimeoutMs", { attemptTimeoutMs: 0 }],
    ["maxPauseMs", { maxPauseMs: -1 }],
    ["minPauseMs", { minPauseMs: 2 ** 31 }],
    ["keepResultMs", { keepResultMs: undefined }],
  ] as const;
  it.each(bad)("are refused where they make no sense: %s", (name, options) => {
    const create = () => createClient({ storage: memoryStorage(), ...options } as never);
    expect(create).toThrow(
      expect.objectContaining({ code: "oncekey_config_invalid", message: expect.stringContaining(name) }),
    );
  });
});
