import { randomBytes } from "node:crypto";
import { once as event } from "node:events";
import { createServer } from "node:net";
import type { OutboxMessage } from "oncekey/outbox";
import { type WebhookEndpoint, type WebhookPublisherOptions, webhookPublisher } from "oncekey/publishers/webhook";
import { Webhook } from "standardwebhooks";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";

const newSecret = () => `whsec_${randomBytes(24).toString("base64")}`;
const TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

const message: OutboxMessage = {
  id: "m".repeat(43),
  topic: "charge.settled",
  payload: '{"amount":9007199254740993,"rate":0.10}',
  key: null,
  orderBy: null,
  tenant: "acme",
  client: null,
  context: null,
  correlation: TRACEPARENT,
  createdAt: new Date("2026-01-31T12:00:00.000Z"),
  attempt: 1,
};

let receiver: WebhookReceiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
beforeEach(() => {
  receiver.received.length = 0;
  receiver.answer = (response) => response.writeHead(204).end();
});

function publish(endpoint: Partial<WebhookEndpoint> | null = {}, options: Partial<WebhookPublisherOptions> = {}) {
  const whole = endpoint === null ? null : { url: receiver.url, secrets: [newSecret()], ...endpoint };
  return webhookPublisher({ endpoint: () => whole, ...options }).publish(message, new AbortController().signal);
}

/** Verifies with the scheme's own library, and gives the body. */
function verified(secret: string | Webhook, index = 0): string {
  const { headers, body } = receiver.received[index] ?? { headers: {}, body: "" };
  const webhook = typeof secret === "string" ? new Webhook(secret) : secret;
  webhook.verify(body, headers as Record<string, string>, { jsonParse: false } as never);
  return body;
}

describe("a webhook", () => {
  it("verifies with the library of Standard Webhooks, carries the message's id and every digit", async () => {
    const secret = newSecret();
    expect(await publish({ secrets: [secret], headers: { "x-region": "eu" } })).toEqual({ kind: "delivered" });
    expect(verified(secret)).toBe(
      '{"type":"charge.settled","timestamp":"2026-01-31T12:00:00.000Z","data":{"amount":9007199254740993,"rate":0.10}}',
    );
    expect(receiver.received[0]?.headers).toMatchObject({
      "content-type": "application/json",
      "webhook-id": message.id,
      "x-region": "eu",
      traceparent: TRACEPARENT,
    });
  });

  it("has one id and one body on every attempt", async () => {
    await publish();
    await publish();
    const [first, second] = receiver.received;
    expect(first?.body).toBe(second?.body);
    expect(first?.headers["webhook-id"]).toBe(second?.headers["webhook-id"]);
  });

  it("can be the payload alone", async () => {
    const secret = newSecret();
    await publish({ secrets: [secret] }, { body: "payload" });
    expect(verified(secret)).toBe(message.payload);
  });

  it("verifies under each secret of a rotation, and under no other", async () => {
    const secrets = [newSecret(), newSecret()] as const;
    await publish({ secrets });
    for (const secret of secrets) verified(secret);
    expect(() => verified(newSecret())).toThrow("No matching signature");
  });

  it("can be signed with a secret given as bytes", async () => {
    const secret = new Uint8Array(randomBytes(32));
    await publish({ secrets: [secret] });
    verified(new Webhook(secret, { format: "raw" }));
  });

  it("cannot be made to carry another id or type by the endpoint's headers", async () => {
    const secret = newSecret();
    await publish({ secrets: [secret], headers: { "webhook-id": "x", "Content-Type": "text/plain" } });
    verified(secret);
    expect(receiver.received[0]?.headers).toMatchObject({
      "webhook-id": message.id,
      "content-type": "application/json",
    });
  });

  it("that nobody wants is delivered without a request", async () => {
    expect(await publish(null)).toEqual({ kind: "delivered" });
    expect(receiver.received).toEqual([]);
  });
});

describe("an answer", () => {
  const afterDate = { "retry-after": "Sat, 31 Jan 2026 12:01:30 GMT", date: "Sat, 31 Jan 2026 12:00:00 GMT" };
  const answers: [number, Record<string, string>, object][] = [
    [200, {}, { kind: "delivered" }],
    [202, {}, { kind: "delivered" }],
    [302, {}, { kind: "retry", why: "the endpoint redirects, which is not followed" }],
    [400, {}, { kind: "retry", why: "the endpoint answered 400" }],
    [404, {}, { kind: "retry", why: "the endpoint answered 404" }],
    [413, {}, { kind: "dead", why: "the endpoint says that it is too large (413)" }],
    [413, { "retry-after": "7" }, { kind: "retry", why: "the endpoint answered 413", afterMs: 7_000 }],
    [429, { "retry-after": "7" }, { kind: "retry", why: "the endpoint answered 429", afterMs: 7_000 }],
    [500, {}, { kind: "retry", why: "the endpoint answered 500" }],
    [502, { "retry-after": "soon" }, { kind: "retry", why: "the endpoint answered 502" }],
    [503, afterDate, { kind: "retry", why: "the endpoint answered 503", afterMs: 90_000 }],
    [504, { ...afterDate, date: "Sat, 31 Jan 2026 13:00:00 GMT" }, { afterMs: 0 }],
  ];

  it.each(answers)("of %i with %o is understood", async (status, headers, published) => {
    receiver.answer = (response) => response.writeHead(status, { location: "/elsewhere", ...headers }).end("body");
    expect(await publish()).toMatchObject(published);
    expect(receiver.received).toHaveLength(1);
  });

  it("of 410 ends it, and tells whose subscription is to be switched off", async () => {
    receiver.answer = (response) => response.writeHead(410).end();
    const gone: OutboxMessage[] = [];
    const result = await publish({}, { onGone: (one) => void gone.push(one) });
    expect(result).toEqual({ kind: "dead", why: "the endpoint is gone (410)" });
    expect(gone).toEqual([message]);
  });

  it("whose body never ends is not read to its end", async () => {
    const cut = new Promise<void>((resolve) => {
      receiver.answer = (response) => {
        response.writeHead(200);
        const pour = () => void (response.write(Buffer.alloc(8_192)) && setImmediate(pour));
        response.on("drain", pour).on("close", resolve);
        pour();
      };
    });
    expect(await publish()).toEqual({ kind: "delivered" });
    await cut;
  });

  it("that never comes is a retry at the time-out, which the relay's signal can shorten", async () => {
    receiver.answer = () => {};
    const failed = { kind: "retry", why: "the endpoint gave no answer (time-out)" };
    expect(await publish({}, { timeoutMs: 50 })).toEqual(failed);
    const stop = new AbortController();
    const hanging: WebhookEndpoint = { url: receiver.url, secrets: [newSecret()] };
    const running = webhookPublisher({ endpoint: () => hanging }).publish(message, stop.signal);
    stop.abort();
    expect(await running).toMatchObject({ kind: "retry" });
  });

  it("from nobody is a retry that names the network's code and not the address", async () => {
    const closed = createServer().listen(0, "127.0.0.1");
    await event(closed, "listening");
    const { port } = closed.address() as { port: number };
    closed.close();
    await event(closed, "close");
    const result = await publish({ url: `http://127.0.0.1:${port}/secret-path` });
    expect(result).toEqual({ kind: "retry", why: "the endpoint gave no answer (ECONNREFUSED)" });
  });
});

describe("an endpoint that cannot be used", () => {
  const short = `whsec_${Buffer.from("too short").toString("base64")}`;
  const bad: [string, Partial<WebhookEndpoint>][] = [
    ["without a secret", { secrets: [] }],
    ["with a secret that is no base64", { secrets: ["whsec_a secret!"] }],
    ["with a secret of unknown form", { secrets: [newSecret().slice("whsec_".length)] }],
    ["with a short secret", { secrets: [short] }],
    ["with another scheme", { url: "file:///etc/passwd" }],
    ["with no address at all", { url: "example" }],
    ["with a password in its address", { url: "https://user:hunter2@example.test" }],
    ["with a malformed header", { headers: { "x-token": "hunter2\nx" } }],
    ["with a malformed header's name", { headers: { "x token": "hunter2" } }],
  ];

  it.each(bad)("%s is refused before anything is sent, and nothing of it is told", async (_what, endpoint) => {
    const error = await publish(endpoint).catch((one: unknown) => one as Error & { code?: string });
    expect(error).toMatchObject({ code: "oncekey_webhook_invalid" });
    const text = `${(error as Error).message} ${String((error as Error).cause)}`;
    for (const secret of ["hunter2", short, "a secret!", "passwd"]) expect(text).not.toContain(secret);
    expect(receiver.received).toEqual([]);
  });

  const nobody = (): null => null;
  it.each([
    ["no endpoint", {}],
    ["an unknown body", { endpoint: nobody, body: "xml" }],
    ["a time-out of nothing", { endpoint: nobody, timeoutMs: 0 }],
  ])("makes no publisher with %s", (_what, options) => {
    expect(() => webhookPublisher(options as WebhookPublisherOptions)).toThrow(
      expect.objectContaining({ code: "oncekey_config_invalid" }),
    );
  });
});
