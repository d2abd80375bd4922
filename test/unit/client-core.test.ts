import { memoryStorage } from "oncekey/client";
import { describe, expect, it } from "vitest";
import { clientDesk, watchedStorage } from "../support/client-desk.ts";
import { ordersOf, testServer } from "../support/client-orders.ts";
import { cut, json, problem, silence, until } from "../support/client-server.ts";

const server = testServer();
const { order, keys } = ordersOf(server);
const distinct = (list: readonly unknown[]) => new Set(list).size;

describe("a submission", () => {
  it("is kept with its key and exact bytes before the first attempt", async () => {
    const { storage, puts } = watchedStorage();
    const stored: number[] = [];
    server.replies = [
      (...reply) => {
        stored.push(puts.length);
        return json(201, { id: 1 })(...reply);
      },
    ];
    const { client } = clientDesk({ storage });
    const result = await client.submit("cart-1", {
      url: `${server.url}/v1/charges`,
      json: { amount: 12345678901234567890n },
    });
    expect(result).toMatchObject({ kind: "succeeded", replayed: false });
    expect(stored).toEqual([2]);
    expect(puts.map(({ attempts, firstSentAt, settled }) => [attempts, firstSentAt !== null, settled?.kind])).toEqual([
      [0, false, undefined],
      [1, true, undefined],
      [1, true, "succeeded"],
    ]);
    expect(distinct(puts.map(({ key }) => key))).toBe(1);
    expect(keys()).toEqual([puts[0]?.key]);
    expect(server.arrived[0]?.body).toBe('{"amount":12345678901234567890}');
    expect(Buffer.from(puts[0]?.request.bodyBase64 ?? "", "base64").toString()).toBe('{"amount":12345678901234567890}');
  });

  it("is sent with the same key and the same bytes at every retry, each written down before it is made", async () => {
    const { storage, puts } = watchedStorage();
    server.replies = [cut, json(503, {}), problem(409, "idempotency_in_progress", "same_key"), json(201, { ok: true })];
    const { client, told } = clientDesk({ storage });
    const bytes = Uint8Array.from({ length: 256 }, (_, at) => at);
    const headers = { "X-Region": "eu", "content-type": "application/octet-stream" };
    const result = await client.submit("cart-1", {
      url: `${server.url}/v1/charges`,
      method: "put",
      body: bytes,
      headers,
    });
    expect(result.kind).toBe("succeeded");
    expect(server.arrived).toHaveLength(4);
    expect(distinct(keys())).toBe(1);
    for (const { bytes: sent, headers: got, method } of server.arrived) {
      expect([...sent]).toEqual([...bytes]);
      expect([method, got["x-region"], got["content-type"]]).toEqual(["PUT", "eu", "application/octet-stream"]);
    }
    expect(puts.map(({ attempts }) => attempts)).toEqual([0, 1, 2, 3, 4, 4]);
    expect(told()).toEqual([
      "created",
      "attempt",
      "pause: no_answer",
      "attempt",
      "pause: server_error",
      "attempt",
      "pause: in_progress",
      "attempt",
      "ended: succeeded",
    ]);
  });

  it("gives the stored result to a second click, after a restart too, and is not sent again", async () => {
    server.replies = [json(201, { id: "ch_1" }, { location: "/v1/charges/ch_1", "set-cookie": "session=secret" })];
    const { client, storage } = clientDesk();
    const first = await client.submit("cart-1", order());
    const again = await client.submit("cart-1", order());
    const restarted = clientDesk({ storage });
    const later = await restarted.client.submit("cart-1", order());
    expect(server.arrived).toHaveLength(1);
    for (const result of [first, again, later]) {
      if (result.kind !== "succeeded") throw new Error(`It is ${result.kind}.`);
      expect(result.response.status).toBe(201);
      expect(result.response.json()).toEqual({ id: "ch_1" });
      expect(result.response.header("Location")).toBe("/v1/charges/ch_1");
    }
    expect(restarted.told()).toEqual(["found", "ended: succeeded"]);
    expect(JSON.stringify(await storage.list())).not.toContain("secret");
  });

  it("is one run for a double click", async () => {
    let answer = () => {};
    server.replies = [(...reply) => (answer = () => json(201, {})(...reply))];
    const { client } = clientDesk();
    const clicks = [client.submit("cart-1", order()), client.submit("cart-1", order())];
    const submission = await client.submission("cart-1", order());
    clicks.push(submission.send());
    await until(() => server.arrived.length === 1);
    answer();
    const results = await Promise.all(clicks);
    expect(results.map(({ kind }) => kind)).toEqual(["succeeded", "succeeded", "succeeded"]);
    expect(server.arrived).toHaveLength(1);
  });

  it("is never sent by two clients of one storage at a time, and both learn the result", async () => {
    let answer = () => {};
    server.replies = [(...reply) => (answer = () => json(201, { id: 7 })(...reply))];
    const storage = memoryStorage();
    const tabs = [clientDesk({ storage }), clientDesk({ storage })];
    const results = tabs.map(({ client }) => client.submit("cart-1", order()));
    await until(() => server.arrived.length === 1 && tabs.some(({ told }) => told().includes("waiting_for_other")));
    expect(server.open()).toBe(1);
    answer();
    for (const result of await Promise.all(results)) {
      expect(result).toMatchObject({ kind: "succeeded" });
    }
    expect(server.arrived).toHaveLength(1);
  });

  it("gives a refusal that another tab was waiting for to both, and sends it again only when asked anew", async () => {
    let answer = () => {};
    server.replies = [(...reply) => (answer = () => json(401, {})(...reply)), json(201, {})];
    const storage = memoryStorage();
    const tabs = [clientDesk({ storage }), clientDesk({ storage })];
    const results = tabs.map(({ client }) => client.submit("cart-1", order()));
    await until(() => server.arrived.length === 1 && tabs.some(({ told }) => told().includes("waiting_for_other")));
    answer();
    for (const result of await Promise.all(results)) {
      expect(result).toMatchObject({ kind: "refused", retry: "same_key", certain: true });
    }
    expect(server.arrived).toHaveLength(1);
    expect(await tabs[1]?.client.submit("cart-1", order())).toMatchObject({ kind: "succeeded" });
    expect(distinct(keys())).toBe(1);
  });

  it("is in the way of another request of its name while it may have been carried out, and after it was", async () => {
    const { client, pass } = clientDesk();
    server.replies = [
      (response) => {
        pass(600_000);
        response.socket?.destroy();
      },
    ];
    expect(await client.submit("cart-1", order(100))).toMatchObject({
      kind: "unknown",
      why: "window_over",
      sent: true,
    });
    expect(await client.submit("cart-1", order(200))).toEqual({ kind: "in_the_way", name: "cart-1", settled: false });
    const other = await client.submission("cart-1", order(200));
    expect(await other.send()).toMatchObject({ kind: "in_the_way", settled: false });
    server.replies = [json(201, {})];
    expect(await client.submit("cart-2", order(100))).toMatchObject({ kind: "succeeded" });
    expect(await client.submit("cart-2", order(200))).toEqual({ kind: "in_the_way", name: "cart-2", settled: true });
    expect(server.arrived).toHaveLength(2);
  });

  it("makes room for an edited one after a refusal, under a new key", async () => {
    server.replies = [json(422, { code: "limit_reached" }), json(201, {})];
    const { client, told } = clientDesk();
    expect(await client.submit("cart-1", order(100))).toMatchObject({
      kind: "refused",
      code: "limit_reached",
      retry: "new_key",
    });
    expect(await client.submit("cart-1", order(100))).toMatchObject({ kind: "refused", code: "limit_reached" });
    expect(server.arrived).toHaveLength(1);
    expect(await client.submit("cart-1", order(50))).toMatchObject({ kind: "succeeded" });
    expect(distinct(keys())).toBe(2);
    expect(told().filter((kind) => kind === "created")).toHaveLength(2);
  });

  it("makes room for an edited one while it was never sent", async () => {
    const { client } = clientDesk();
    const draft = await client.submission("cart-1", order(100));
    const edited = await client.submission("cart-1", order(200));
    expect(draft.sent).toBe(false);
    expect(edited.key).not.toBe(draft.key);
    expect(await edited.send()).toMatchObject({ kind: "succeeded" });
    expect(edited.sent).toBe(true);
    expect(await draft.send()).toMatchObject({ kind: "in_the_way", settled: true });
    expect(keys()).toEqual([edited.key]);
  });

  it("is not put in the place of one whose answer is no longer kept", async () => {
    server.replies = [problem(409, "idempotency_response_unavailable", "never")];
    const { client } = clientDesk();
    expect(await client.submit("cart-1", order(100))).toMatchObject({ kind: "refused", retry: "never" });
    expect(await client.submit("cart-1", order(200))).toMatchObject({ kind: "in_the_way", settled: true });
  });

  it("that was discarded makes room for another one, with another key", async () => {
    server.replies = [json(402, { code: "card_declined" }), json(201, {})];
    const { client, storage } = clientDesk();
    const submission = await client.submission("cart-1", order());
    expect(await submission.send()).toMatchObject({ kind: "refused" });
    await submission.discard();
    expect(await storage.list()).toEqual([]);
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "succeeded" });
    expect(distinct(keys())).toBe(2);
  });

  it("that is discarded while it is sent ends aborted, and is gone", async () => {
    server.replies = [silence];
    const { client, storage } = clientDesk();
    const submission = await client.submission("cart-1", order());
    const sending = [submission.send(), client.submit("cart-2", order())];
    await until(() => server.arrived.length === 2);
    await submission.discard();
    expect(await sending[0]).toEqual({ kind: "aborted", sent: true });
    expect((await storage.list()).map(({ name }) => name)).toEqual(["cart-2"]);
    let ended = false;
    void sending[1]?.finally(() => (ended = true));
    await until(() => server.open() <= 1);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect([ended, server.open()]).toEqual([false, 1]);
    await client.find("cart-2").then((other) => other?.discard());
    expect(await sending[1]).toMatchObject({ kind: "aborted" });
  });

  it("is found by its name, settled or not", async () => {
    const { client } = clientDesk();
    expect(await client.find("cart-1")).toBeNull();
    const made = await client.submission("cart-1", order());
    expect((await client.find("cart-1"))?.key).toBe(made.key);
    await made.send();
    expect(await (await client.find("cart-1"))?.send()).toMatchObject({ kind: "succeeded" });
    expect(server.arrived).toHaveLength(1);
  });

  it("is forgotten after keepResultMs, and removed when the client looks for pending ones", async () => {
    const { client, storage, pass } = clientDesk({ keepResultMs: 1_000 });
    await client.submit("cart-1", order());
    pass(1_001);
    expect(await client.find("cart-1")).toBeNull();
    expect(await client.pending()).toEqual([]);
    let kept = 1;
    await until(() => {
      void storage.list().then(({ length }) => (kept = length));
      return kept === 0;
    });
    await client.submit("cart-1", order());
    expect(distinct(keys())).toBe(2);
  });
});

describe("headers of an attempt", () => {
  it("are asked for anew each time, never kept, and replace neither the key nor what was kept", async () => {
    let token = 0;
    server.replies = [json(503, {}), json(201, {})];
    const { client, storage } = clientDesk({
      attemptHeaders: () => ({
        authorization: `Bearer secret-${++token}`,
        "idempotency-key": "another",
        "content-type": "text/html",
      }),
    });
    await client.submit("cart-1", order());
    expect(server.arrived.map(({ headers }) => headers.authorization)).toEqual(["Bearer secret-1", "Bearer secret-2"]);
    expect(distinct(keys())).toBe(1);
    expect(keys()[0]).toHaveLength(36);
    expect(server.arrived.map(({ headers }) => headers["content-type"])).toEqual(Array(2).fill("application/json"));
    expect(JSON.stringify(await storage.list())).not.toContain("secret");
  });

  it("that cannot be had raise, and leave the submission unsent", async () => {
    const { client } = clientDesk({ attemptHeaders: () => Promise.reject(new Error("no token")) });
    await expect(client.submit("cart-1", order())).rejects.toThrow("no token");
    expect(server.arrived).toEqual([]);
    expect((await client.pending()).map(({ sent }) => sent)).toEqual([false]);
  });

  it("carry the key under the name that the API uses, and the instant of the first attempt where asked", async () => {
    server.replies = [json(503, {}), json(201, {})];
    const { client } = clientDesk({
      keyHeader: "Repeatability-Request-ID",
      firstSentHeader: "Repeatability-First-Sent",
      minPauseMs: 20_000,
      random: () => 0.99,
    });
    await client.submit("cart-1", order());
    const sent = server.arrived.map(({ headers }) => [
      headers["repeatability-request-id"],
      headers["repeatability-first-sent"],
      headers["idempotency-key"],
    ]);
    expect(sent[0]).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), "Sat, 31 Jan 2026 12:00:00 GMT", undefined]);
    expect(sent[1]).toEqual(sent[0]);
  });
});
