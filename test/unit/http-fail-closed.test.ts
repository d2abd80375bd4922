import type { AddressInfo } from "node:net";
import express from "express";
import { fastify } from "fastify";
import { created, createOncekey, type Outcome } from "oncekey";
import { idempotent as expressIdempotent } from "oncekey/express";
import { idempotent as fastifyIdempotent } from "oncekey/fastify";
import { idempotent as fetchIdempotent } from "oncekey/fetch";
import { memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import { runCaptured } from "../support/captured.ts";
import { gate } from "../support/gate.ts";

const scope = () => ({ tenant: "acme", client: null });
const headers = (key = "k") => ({ "idempotency-key": key, "content-type": "application/json" });
const request = (path: string, body: string, key?: string) =>
  new Request(`http://localhost${path}`, { method: "POST", headers: headers(key), body });

describe("a binding that cannot compare", () => {
  it("refuses on Fastify when another preParsing took the place of ours, instead of taking all bodies for equal", async () => {
    const once = createOncekey({ store: memoryStore() });
    const orders = once.capture({ name: "orders", version: 1, reconcile: async () => ({ kind: "not_done" }) });
    await once.start();
    const app = fastify();
    app.post(
      "/orders",
      { ...fastifyIdempotent(orders, { scope }), preParsing: (_request, _reply, payload, done) => done(null, payload) },
      async (req) => ({ got: req.body }),
    );
    const post = (amount: number) =>
      app.inject({ method: "POST", url: "/orders", headers: headers(), payload: JSON.stringify({ amount }) });
    await post(1);
    const other = await post(2);
    await app.close();
    expect([422, 500]).toContain(other.statusCode);
  });

  it("keeps the bodies of a captured route readable whose type merely sounds like JSON", async () => {
    const once = createOncekey({ store: memoryStore() });
    const orders = once.capture({ name: "orders", version: 1, reconcile: async () => ({ kind: "not_done" }) });
    await once.start();
    const app = express();
    app.post("/orders", expressIdempotent(orders, { scope }), express.text({ type: () => true }), (req, res) => {
      res.json({ got: req.body });
    });
    const server = app.listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/orders`;
    const answer = await fetch(url, {
      method: "POST",
      headers: { ...headers(), "content-type": "application/json-seq" },
      body: "abc",
    });
    server.close();
    expect({ status: answer.status, body: await answer.text() }).toEqual({ status: 200, body: '{"got":"abc"}' });
  });
});

describe("an outcome", () => {
  it("whose headers no server can send is refused before it commits", async () => {
    const store = memoryStore();
    const once = createOncekey({ store });
    const orders = once.transaction({
      name: "orders",
      version: 1,
      async run({ tx }) {
        await tx.insert("order", { n: 1 });
        return created("/v1/orders/発注", {});
      },
    });
    await once.start();
    const handle = fetchIdempotent(orders, { scope });
    await expect(handle(request("/orders", "{}"))).rejects.toThrow();
    expect(store.rows("order")).toHaveLength(0);
  });
});

describe("keys of the whole account", () => {
  it("never replay another operation's outcome, also where requests are not compared", async () => {
    const once = createOncekey({ store: memoryStore() });
    const define = (name: string) =>
      once.transaction({
        name,
        version: 1,
        keySpace: "account",
        compare: "none",
        run: async () => created(`/${name}`, { name }),
      });
    const [charges, refunds] = [define("charges"), define("refunds")];
    await once.start();
    const run = (operation: typeof charges) => once.run(operation, { scope: scope(), key: "k", input: {} });
    expect((await run(charges)).kind).toBe("completed");
    expect((await run(refunds)).kind).toBe("mismatch");
  });
});

describe("a duplicate of a captured run that answers 5xx", () => {
  it("is not given the headers that belong to the first caller", async () => {
    const once = createOncekey({ store: memoryStore() });
    const operation = once.capture({ name: "refunds", version: 1, reconcile: async () => ({ kind: "not_done" }) });
    await once.start();
    const finish = gate();
    const run = () =>
      runCaptured(operation, {
        waitMs: 1_000,
        handler: async (): Promise<Outcome> => {
          await finish.promise;
          return { status: 500, headers: [["set-cookie", "session=1"]], body: new Uint8Array() };
        },
      });
    const first = run();
    const second = run();
    await new Promise(setImmediate);
    finish.open();
    await first;
    expect(await second).toMatchObject({ kind: "unknown", provisional: { headers: [] } });
  });
});

describe("duplicates that wait", () => {
  it("are bounded per key also where their bytes differ", async () => {
    const once = createOncekey({ store: memoryStore(), maxWaitersPerKey: 1, waitMs: 60_000 });
    const begun = gate();
    const finish = gate();
    const orders = once.phases({
      name: "orders",
      version: 1,
      async run(op) {
        begun.open();
        await finish.promise;
        return op.complete(async () => created("/1", {}));
      },
    });
    await once.start();
    const handle = fetchIdempotent(orders, { scope });
    const first = handle(request("/orders", '{"a":1}'));
    await begun.promise;
    const turnedAway = gate();
    const early: number[] = [];
    const duplicates = Array.from({ length: 10 }, async (_, at) => {
      const { status } = await handle(request("/orders", `{"a":${" ".repeat(at + 1)}1}`));
      early.push(status);
      if (early.length === 9) turnedAway.open();
      return status;
    });
    // Nine of them are answered while the first request still runs: only one may wait for it.
    await turnedAway.promise;
    const refused = Array.from({ length: 9 }, () => 409);
    expect(early).toEqual(refused);
    finish.open();
    await first;
    expect((await Promise.all(duplicates)).toSorted()).toEqual([201, ...refused]);
  });
});
