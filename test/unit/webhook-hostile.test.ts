import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { createOncekey } from "oncekey";
import { type MemoryTransaction, memoryStore } from "oncekey/memory";
import { createWebhook, hmacWebhooks, nodeWebhook, type WebhookOptions } from "oncekey/webhooks";
import { afterEach, describe, expect, it } from "vitest";
import { gate } from "../support/gate.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const SECRET = "a secret of the sender";
const scheme = hmacWebhooks({
  header: "x-signature",
  algorithm: "sha256",
  encoding: "hex",
  id: (payload) => (payload as { id?: unknown }).id,
  redeliversForMs: 3_600_000,
});

async function world(options: Partial<WebhookOptions<MemoryTransaction>> = {}) {
  const store = memoryStore();
  const once = createOncekey({ store, onError: () => {} });
  await once.start();
  closing.push(() => once.close());
  const handler: WebhookOptions<MemoryTransaction>["handler"] = async ({ tx, event }) => {
    await tx.insert("effect", { id: event.id });
  };
  const webhook = createWebhook(once, { source: "bank", scheme, secrets: () => [SECRET], handler, ...options });
  return { store, webhook };
}

function signed(payload: string) {
  const body = new TextEncoder().encode(payload);
  const signature = createHmac("sha256", SECRET).update(body).digest("hex");
  return { tenant: "acme", headers: { "x-signature": signature }, body };
}

async function listening(handler: (req: IncomingMessage, res: ServerResponse) => void): Promise<URL> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

describe("a webhook from JavaScript", () => {
  it.each([undefined, null, 0, "", "globex", {}, Promise.resolve(undefined)])(
    "is the tenant's only when belongsTo says yes (%#)",
    async (said) => {
      const { store, webhook } = await world({ belongsTo: () => said as never });
      const answer = await webhook.receive(signed('{"id":"evt_1"}'));
      expect(answer).toMatchObject({ status: 403, result: { kind: "refused", why: "tenant_wrong" } });
      expect(store.accepted()).toEqual([]);
    },
  );

  it("takes bytes only: text and parsed bodies have lost what was signed", async () => {
    const { store, webhook } = await world();
    for (const body of ['{"id":"evt_1"}', { id: "evt_1" }, undefined]) {
      const incoming = { ...signed('{"id":"evt_1"}'), body: body as never };
      await expect(webhook.receive(incoming)).rejects.toMatchObject({ code: "oncekey_webhook_invalid" });
    }
    expect(store.accepted()).toEqual([]);
  });

  it("refuses durations under which every delivery would fail", async () => {
    const own = { name: "own", verify: scheme.verify };
    for (const options of [
      { maxDurationMs: 0 },
      { maxDurationMs: 1.5 },
      { waitMs: -1 },
      { rememberMs: 11 * 365 * 24 * 3_600_000 },
      { rememberMs: 4_000_000, maxDurationMs: 4_000_000 },
      { scheme: { ...own, redeliversForMs: Number.NaN } },
      { scheme: own as never },
    ]) {
      await expect(world(options)).rejects.toMatchObject({ code: "oncekey_webhook_invalid" });
    }
  });

  it.each(['"a\\u0000b"', "7", '""', JSON.stringify("x".repeat(513))])(
    "refuses an event id that no redelivery would mend (%#)",
    async (id) => {
      const { webhook } = await world();
      const answer = await webhook.receive(signed(`{"id":${id}}`));
      expect(answer).toMatchObject({ status: 400, result: { why: "id_missing" } });
    },
  );
});

describe("the Node handler among other middleware", () => {
  it("survives an answer that somebody else has given", async () => {
    const { store, webhook } = await world();
    const ended = gate();
    const handler = nodeWebhook(webhook, () => "acme");
    const url = await listening((req, res) => {
      handler(req, res);
      res.writeHead(503).write("too late", () => ended.open());
    });
    const { headers, body } = signed('{"id":"evt_1"}');
    const response = await fetch(url, { method: "POST", headers, body });
    await ended.promise;
    expect(response.status).toBe(503);
    await expect.poll(() => store.rows("effect")).toHaveLength(1);
    expect((await webhook.receive(signed('{"id":"evt_1"}'))).result.kind).toBe("duplicate");
    await response.body?.cancel();
  });

  it("does not wait for a request whose client has left already", async () => {
    const { webhook } = await world();
    let told: unknown;
    const url = await listening((req, res) => {
      req.once("close", () => nodeWebhook(webhook, () => "acme")(req, res, (error) => (told = error)));
    });
    const socket = connect(Number(url.port), url.hostname);
    socket.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n", () => socket.destroy());
    await expect.poll(() => told).toMatchObject({ code: "idempotency_request_invalid" });
  });
});
