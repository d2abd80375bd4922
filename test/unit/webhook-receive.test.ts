import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { connect } from "node:net";
import express from "express";
import { createOncekey, type OncekeyOptions } from "oncekey";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import {
  createWebhook,
  fetchWebhook,
  nodeWebhook,
  stripeWebhooks,
  type Webhook,
  type WebhookOptions,
} from "oncekey/webhooks";
import Stripe from "stripe";
import { afterEach, describe, expect, it } from "vitest";
import { gate } from "../support/gate.ts";

const stripe = new Stripe("sk_test_unused");
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const secretsOf: Record<string, readonly string[]> = {
  acme: ["whsec_acme"],
  globex: ["whsec_globex", "whsec_globex_2"],
};

interface World {
  readonly store: MemoryStore;
  readonly errors: unknown[];
  readonly webhook: Webhook;
}

async function world(
  options: Partial<WebhookOptions<MemoryTransaction>> = {},
  once: Partial<OncekeyOptions<MemoryTransaction>> = {},
): Promise<World> {
  const errors: unknown[] = [];
  const store = memoryStore();
  const instance = createOncekey({ store, onError: (error) => errors.push(error), ...once });
  await instance.start();
  closing.push(() => instance.close());
  const webhook = createWebhook(instance, {
    source: "stripe",
    scheme: stripeWebhooks(),
    secrets: (tenant) => secretsOf[tenant] ?? null,
    belongsTo: ({ payload }, tenant) => (payload as { account?: string }).account === tenant,
    async handler({ tx, event, tenant }) {
      await tx.insert("effect", { id: event.id, tenant });
    },
    ...options,
  });
  return { store, errors, webhook };
}

interface Given {
  readonly tenant?: string;
  readonly secret?: string;
  readonly payload?: string;
  readonly tamper?: boolean;
  readonly atS?: number;
}

function delivery({ tenant = "acme", secret = "whsec_acme", atS, ...given }: Given = {}) {
  const payload = given.payload ?? JSON.stringify({ id: "evt_1", type: "charge.settled", account: tenant });
  const header = stripe.webhooks.generateTestHeaderString({
    payload,
    secret,
    ...(atS === undefined ? {} : { timestamp: atS }),
  });
  const body = new TextEncoder().encode(given.tamper === true ? payload.replace("charge", "refund") : payload);
  return { tenant, headers: { "stripe-signature": header }, body };
}

const text = (body: Uint8Array) => new TextDecoder().decode(body);

describe("receiving a webhook", () => {
  it("acts once and answers 200 every time", async () => {
    const { store, webhook } = await world();
    const first = await webhook.receive(delivery());
    expect(first).toMatchObject({ status: 200, result: { kind: "done" } });
    const second = await webhook.receive(delivery());
    expect(second).toMatchObject({ status: 200, result: { kind: "duplicate", receivedAt: expect.any(Date) } });
    expect(text(second.body)).toBe(text(first.body));
    expect(store.rows("effect")).toEqual([{ id: "evt_1", tenant: "acme" }]);
  });

  it("knows an event by tenant and source", async () => {
    const { store, webhook } = await world();
    await webhook.receive(delivery());
    await webhook.receive(delivery({ tenant: "globex", secret: "whsec_globex" }));
    expect(store.rows("effect")).toHaveLength(2);
  });

  it("gives the handler the event, and the step of the transaction", async () => {
    const seen: unknown[] = [];
    const { store, webhook } = await world({
      async handler({ event, payload, tenant, reference, send, signal, ifNewer }) {
        seen.push([event.id, event.type, payload, text(event.body), tenant, reference.length, signal.aborted]);
        await ifNewer("customer:1", 5, () => send("customer.changed", { id: 1 }));
        await ifNewer("customer:1", 4, () => send("customer.changed", { id: 2 }));
      },
    });
    expect((await webhook.receive(delivery())).status).toBe(200);
    const payload = { id: "evt_1", type: "charge.settled", account: "acme" };
    expect(seen).toEqual([["evt_1", "charge.settled", payload, JSON.stringify(payload), "acme", 43, false]]);
    expect(store.messages()).toMatchObject([{ topic: "customer.changed", payload: '{"id":1}', correlation: "evt_1" }]);
  });

  it.each([
    ["signature_wrong", 401, delivery({ tamper: true })],
    ["signature_wrong", 401, delivery({ secret: "whsec_globex" })],
    ["timestamp_outside", 401, delivery({ atS: 1_700_000_000 })],
    ["tenant_unknown", 401, delivery({ tenant: "initech" })],
    ["tenant_wrong", 403, delivery({ payload: '{"id":"evt_1","account":"globex"}' })],
    ["header_missing", 400, { ...delivery(), headers: {} }],
    ["body_not_json", 400, delivery({ payload: "id=evt_1" })],
    ["id_missing", 400, delivery({ payload: '{"account":"acme"}' })],
    ["body_too_large", 413, { ...delivery(), body: new Uint8Array(1_001) }],
  ])("refuses %s with %i, stores nothing and says nothing", async (why, status, incoming) => {
    const { store, webhook, errors } = await world({ maxBodyBytes: 1_000 });
    const answer = await webhook.receive(incoming);
    expect(answer).toMatchObject({ status, result: { kind: "refused", why } });
    expect(text(answer.body)).toBe("refused\n");
    expect(JSON.stringify(answer.headers)).not.toMatch(/acme|signature|evt_1/);
    expect([store.accepted(), store.rows("effect"), errors]).toEqual([[], [], []]);
  });

  it("accepts one of two secrets during a rotation", async () => {
    const { webhook } = await world();
    const answer = await webhook.receive(delivery({ tenant: "globex", secret: "whsec_globex_2" }));
    expect(answer.status).toBe(200);
  });

  it("answers 500 when the handler throws, remembers nothing, and acts on the redelivery", async () => {
    let fails = true;
    const { store, webhook, errors } = await world({
      async handler({ tx }) {
        await tx.insert("effect", { n: 1 });
        if (fails) throw new Error("the handler failed: sk_secret");
      },
    });
    const failed = await webhook.receive(delivery());
    expect(failed).toMatchObject({ status: 500, result: { kind: "failed" } });
    expect(text(failed.body)).toBe("failed\n");
    expect(errors).toHaveLength(1);
    expect([store.accepted(), store.rows("effect")]).toEqual([[], []]);
    fails = false;
    expect((await webhook.receive(delivery())).status).toBe(200);
    expect(store.rows("effect")).toHaveLength(1);
  });

  it("answers 200 only once the effect is committed; a duplicate meanwhile 503 with Retry-After", async () => {
    const entered = gate();
    const go = gate();
    const { store, webhook } = await world({
      waitMs: 0,
      async handler({ tx, event }) {
        entered.open();
        await go.promise;
        await tx.insert("effect", { id: event.id });
      },
    });
    const first = webhook.receive(delivery());
    await entered.promise;
    const duplicate = await webhook.receive(delivery());
    expect(duplicate).toMatchObject({ status: 503, result: { kind: "unsettled", why: "busy" } });
    expect(Number(duplicate.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(store.rows("effect")).toHaveLength(0);
    go.open();
    expect((await first).status).toBe(200);
    expect(store.rows("effect")).toHaveLength(1);
  });

  it("raises what is wrong with its configuration, and is no endpoint then", async () => {
    for (const secrets of [[], [""], ["whsec_a "]]) {
      const { webhook } = await world({ secrets: async () => secrets });
      await expect(webhook.receive(delivery())).rejects.toMatchObject({ code: "oncekey_webhook_invalid" });
    }
    const days = (n: number) => n * 24 * 3_600_000;
    const wrong: Partial<WebhookOptions<MemoryTransaction>>[] = [
      { rememberMs: days(3) },
      { rememberMs: Number.NaN },
      { rememberMs: Number.POSITIVE_INFINITY },
      { toleranceMs: 0 },
      { toleranceMs: days(20) },
      { maxBodyBytes: 0 },
      { source: "" },
      { scheme: {} as never },
      { secrets: ["whsec_a"] as never },
      { handler: undefined as never },
    ];
    for (const options of wrong) {
      await expect(world(options)).rejects.toMatchObject({ code: "oncekey_webhook_invalid" });
    }
    await expect(world({ rememberMs: days(3) + 1 })).resolves.toBeDefined();
  });

  it("asks the provider to come back while the instance closes", async () => {
    const store = memoryStore();
    const once = createOncekey({ store, onError: () => {} });
    await once.start();
    const webhook = createWebhook(once, {
      source: "stripe",
      scheme: stripeWebhooks(),
      secrets: () => ["whsec_acme"],
      handler: async () => {},
    });
    await once.close();
    expect(await webhook.receive(delivery())).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
  });
});

describe("the Fetch handler", () => {
  it("takes the raw body and answers", async () => {
    const { store, webhook } = await world({ maxBodyBytes: 100 });
    const handler = fetchWebhook(webhook, (request) => new URL(request.url).pathname.slice(1));
    const send = ({ tenant, headers, body }: ReturnType<typeof delivery>) =>
      handler(new Request(`http://api/${tenant}`, { method: "POST", headers, body }));
    expect((await send(delivery())).status).toBe(200);
    expect((await send({ ...delivery(), body: new Uint8Array(101) })).status).toBe(413);
    expect((await send(delivery({ secret: "whsec_globex" }))).status).toBe(401);
    expect(await (await send(delivery())).text()).toBe("accepted\n");
    expect(store.rows("effect")).toHaveLength(1);
    const read = new Request("http://api/acme", { method: "POST", body: "{}" });
    await read.text();
    await expect(handler(read)).rejects.toMatchObject({ code: "oncekey_body_consumed" });
  });
});

/** An Express app, or a bare server, that listens. */
async function listening(handler: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("the Node handler", () => {
  const send = (url: string, { tenant, headers, body }: ReturnType<typeof delivery>) =>
    fetch(`${url}/${tenant}`, { method: "POST", headers: { ...headers, "content-type": "application/json" }, body });

  it("serves Node's http server", async () => {
    const { store, webhook, errors } = await world({ maxBodyBytes: 100 });
    const url = await listening(nodeWebhook(webhook, (req) => (req.url ?? "").slice(1)));
    expect((await send(url, delivery())).status).toBe(200);
    const again = await send(url, delivery());
    expect([again.status, await again.text()]).toEqual([200, "accepted\n"]);
    expect((await send(url, delivery({ tamper: true }))).status).toBe(401);
    expect(store.rows("effect")).toHaveLength(1);
    expect(errors).toEqual([]);
  });

  it("stops reading what is too large, and answers 413", async () => {
    const { webhook } = await world({ maxBodyBytes: 1_000 });
    const url = await listening(nodeWebhook(webhook, () => "acme"));
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const req = httpRequest(url, { method: "POST" }, (res) => {
        resolve(res.statusCode);
        req.destroy();
      });
      req.on("error", reject);
      // Never ended: an answer can only come from a server that did not wait for the rest.
      req.write(Buffer.alloc(2_000));
    });
    expect(status).toBe(413);
  });

  it("stores nothing of a body that broke off", async () => {
    const failed = gate();
    const { store, webhook } = await world({}, { onError: () => failed.open() });
    const url = new URL(await listening(nodeWebhook(webhook, () => "acme")));
    const socket = connect(Number(url.port), url.hostname);
    socket.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{"id":`, () => socket.destroy());
    await failed.promise;
    expect(store.accepted()).toEqual([]);
  });

  it("serves Express: before its parsers, after express.raw(), and with kept bytes", async () => {
    const { store, webhook } = await world();
    const handler = nodeWebhook(webhook, (req: express.Request) => String(req.params.tenant));
    const keep = (req: object, _res: unknown, bytes: Buffer) => Object.assign(req, { rawBody: bytes });
    const app = express()
      .post("/:tenant", handler)
      .post("/raw/:tenant", express.raw({ type: "*/*" }), handler)
      .post("/kept/:tenant", express.json({ verify: keep }), handler);
    const url = await listening(app);
    for (const [at, id] of [
      ["", "evt_1"],
      ["/raw", "evt_2"],
      ["/kept", "evt_3"],
    ] as const) {
      const payload = JSON.stringify({ id, account: "acme" });
      expect((await send(`${url}${at}`, delivery({ payload }))).status).toBe(200);
    }
    expect(store.rows("effect")).toHaveLength(3);
  });

  it("says so when a parser took the bytes, instead of waiting for a stream that has ended", async () => {
    const { store, webhook, errors } = await world();
    const handler = nodeWebhook(webhook, () => "acme");
    const told: unknown[] = [];
    const app = express()
      .use(express.json())
      .post("/acme", handler)
      .post("/bare/acme", (req, res) => handler(req, res))
      .use((error: unknown, _req: express.Request, res: express.Response, _next: express.NextFunction) => {
        told.push(error);
        res.sendStatus(500);
      });
    const url = await listening(app);
    expect((await send(url, delivery())).status).toBe(500);
    expect((await send(`${url}/bare`, delivery())).status).toBe(500);
    expect([...told, ...errors]).toMatchObject([{ code: "oncekey_body_consumed" }, { code: "oncekey_body_consumed" }]);
    expect(store.accepted()).toEqual([]);
  });
});
