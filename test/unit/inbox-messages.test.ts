import { createOncekey, currentOrigin, type OncekeyOptions, ok, type Send, sendInside } from "oncekey";
import { idempotent } from "oncekey/fetch";
import { type MemoryTransaction, memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import { cipherOf, ownerOf } from "../../src/core/cipher.ts";
import { decodeValue } from "../../src/core/codec.ts";
import { requestId, traceParent } from "../../src/core/correlation.ts";
import { runCaptured } from "../support/captured.ts";

const scope = { tenant: "acme", client: "app" };
const TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

async function sending(options: Partial<OncekeyOptions<MemoryTransaction>>, sends: (send: Send) => Promise<unknown>) {
  const store = memoryStore();
  const once = createOncekey({ store, onError: () => {}, ...options });
  const operation = once.transaction({
    name: "a",
    version: 1,
    async run({ send }) {
      await sends(send);
      return ok({});
    },
  });
  const phased = once.phases({
    name: "b",
    version: 1,
    async run(op) {
      await op.phase("first", ({ send }) => sends(send).then(() => {}));
      return op.complete(async ({ send }) => {
        await sends(send);
        return ok({});
      });
    },
  });
  await once.start();
  const run = (key = "k", more: object = {}) => once.run(operation, { scope, key, ...more });
  return { store, once, run, runPhases: (more: object = {}) => once.run(phased, { scope, key: "k", ...more }) };
}

describe("a message that is sent", () => {
  it("carries tenant, client, correlation and the declared context, from every kind", async () => {
    const send = (send: Send) => send("invoice.created", { n: 1 }, { key: "p", orderBy: "inv_1", delayMs: 5 });
    const { store, run, runPhases } = await sending({}, send);
    const more = { correlation: TRACE, context: { account: "acct_1" } };
    await run("k", more);
    await runPhases(more);
    const messages = store.messages();
    expect(messages).toHaveLength(3);
    for (const message of messages) {
      expect(message).toMatchObject({ topic: "invoice.created", payload: '{"n":1}', key: "p", orderBy: "inv_1" });
      expect(message).toMatchObject({ ...scope, correlation: TRACE, entryId: expect.any(Uint8Array) });
      expect(decodeValue(message.context as Uint8Array)).toEqual({ account: "acct_1" });
    }
    expect(new Set(messages.map(({ id }) => id)).size).toBe(3);
  });

  it("carries nothing where the request brought nothing, or nothing that a header can hold", async () => {
    const { store, run } = await sending({}, (send) => send("t", 1));
    await run("k1");
    await run("k2", { correlation: "a\r\nb: c" });
    expect(store.messages()).toMatchObject([
      { context: null, correlation: null },
      { context: null, correlation: null },
    ]);
  });

  it("has its context sealed for itself where keys are set", async () => {
    const encryptionKeys = [{ id: 1, key: new Uint8Array(32).fill(7) }];
    const { store, run, runPhases } = await sending({ encryptionKeys }, (send) => send("t", 1));
    await run("k", { context: { account: "acct_1" } });
    await runPhases({ context: { account: "acct_1" } });
    const cipher = cipherOf(encryptionKeys);
    for (const { id, tenant, context } of store.messages()) {
      const stored = context as Uint8Array;
      expect(Buffer.from(stored).toString("latin1")).not.toContain("acct_1");
      expect(decodeValue(cipher.open(ownerOf(id, tenant), "message", stored))).toEqual({ account: "acct_1" });
      for (const owner of [ownerOf("another", tenant), ownerOf(id, "globex")]) {
        expect(() => cipher.open(owner, "message", stored)).toThrow("cannot be decrypted");
      }
    }
  });

  it("has a topic that is declared, exactly or by its prefix", async () => {
    for (const topic of ["invoice.created", "charge.settled"]) {
      const { run, store } = await sending({ topics: ["invoice.created", "charge.*"] }, (send) => send(topic, 1));
      await run();
      expect(store.messages()).toHaveLength(1);
    }
    for (const topic of ["invoice.deleted", "charge", "invoice.created.twice"]) {
      const { run, store } = await sending({ topics: ["invoice.created", "charge.*"] }, (send) => send(topic, 1));
      await expect(run()).rejects.toMatchObject({ code: "oncekey_topic_unknown" });
      expect(store.messages()).toHaveLength(0);
    }
  });

  it("has a payload within the limit, in bytes and not in characters", async () => {
    const fits = await sending({ maxMessageBytes: 10 }, (send) => send("t", "éééé"));
    await fits.run();
    expect(fits.store.messages()).toHaveLength(1);
    const exceeds = await sending({ maxMessageBytes: 10 }, (send) => send("t", "ééééé"));
    await expect(exceeds.run()).rejects.toMatchObject({ code: "oncekey_message_too_large" });
    expect(exceeds.store.messages()).toHaveLength(0);
  });

  const wrong: [string, (send: Send) => Promise<void>][] = [
    ["an empty topic", (send) => send("", 1)],
    ["a topic of 256 characters", (send) => send("x".repeat(256), 1)],
    ["a payload that is not JSON", (send) => send("t", new Map())],
    ["no payload", (send) => send("t", undefined)],
    ["an empty key", (send) => send("t", 1, { key: "" })],
    ["an order with NUL", (send) => send("t", 1, { orderBy: "a\0" })],
    ["a delay into the past", (send) => send("t", 1, { delayMs: -1 })],
    ["a delay that is no number", (send) => send("t", 1, { delayMs: Number.NaN })],
  ];
  it.each(wrong)("is refused: %s", async (_, send) => {
    const { run, store } = await sending({}, send);
    await expect(run()).rejects.toMatchObject({ code: "oncekey_value_unsupported" });
    expect(store.messages()).toHaveLength(0);
  });
});

describe("settings of messages", () => {
  const wrong: [string, object][] = [
    ["a topic that is no list", { topics: "invoice.*" }],
    ["a topic without a name", { topics: ["invoice.*", ""] }],
    ["a limit that is no number", { maxMessageBytes: Number.NaN }],
    ["a limit of nothing", { maxMessageBytes: 0 }],
  ];
  it.each(wrong)("are refused at start: %s", async (_, settings) => {
    const once = createOncekey({ store: memoryStore(), ...settings });
    await expect(once.start()).rejects.toMatchObject({ code: "oncekey_config_invalid" });
  });
});

describe("sendInside", () => {
  it("writes into the captured handler's own transaction: there if that commits, gone if it does not", async () => {
    const store = memoryStore();
    const once = createOncekey({ store, onError: () => {} });
    const operation = once.capture({ name: "refunds.create", version: 1 });
    await once.start();
    const answer = { status: 201, headers: [], body: new Uint8Array() };
    const handler = async () => {
      const undone = store.transaction(async ({ tx }) => {
        await sendInside(tx, "refund.created", { n: 0 });
        throw new Error("undone");
      });
      await expect(undone).rejects.toThrow("undone");
      await store.transaction(async ({ tx }) => {
        await tx.insert("refund", { id: currentOrigin().id });
        await sendInside(tx, "refund.created", { n: 1 }, { orderBy: "r" });
        await sendInside(tx, "refund.created", { n: 2 });
      });
      return answer;
    };
    expect((await runCaptured(operation, { handler })).kind).toBe("completed");
    expect((await runCaptured(operation, { handler })).kind).toBe("replayed");
    const messages = store.messages();
    expect(messages).toMatchObject([
      { payload: '{"n":1}', orderBy: "r", tenant: "acme", client: null },
      { payload: '{"n":2}', tenant: "acme" },
    ]);
    expect(new Set(messages.map(({ id }) => id)).size).toBe(2);
    expect(store.rows("refund")).toEqual([{ id: Buffer.from(messages[0]?.entryId ?? []).toString("hex") }]);
  });

  it("is refused outside a captured handler", async () => {
    await expect(sendInside({}, "t", 1)).rejects.toMatchObject({ code: "oncekey_operation_unknown" });
  });
});

describe("what ties a request to its caller's logs", () => {
  const parents: [string, readonly string[], string | null][] = [
    ["as it is", [TRACE], TRACE],
    ["of a later version, by its known fields", [`cc${TRACE.slice(2)}-what-comes`], TRACE],
    ["of a later version, unknown flags cleared", [`01${TRACE.slice(2, -2)}fe`], `${TRACE.slice(0, -2)}00`],
    ["none", [], null],
    ["sent twice", [TRACE, TRACE], null],
    ["in capitals", [TRACE.toUpperCase()], null],
    ["of version ff", [`ff${TRACE.slice(2)}`], null],
    ["of version 00 with more fields", [`${TRACE}-more`], null],
    ["without a trace", [`00-${"0".repeat(32)}-00f067aa0ba902b7-01`], null],
    ["without a parent", [`00-4bf92f3577b34da6a3ce929d0e0e4736-${"0".repeat(16)}-01`], null],
    ["cut", [TRACE.slice(0, -3)], null],
  ];
  it.each(parents)("traceparent %s", (_, lines, expected) => {
    expect(traceParent(lines)).toBe(expected);
  });

  const ids: [string, readonly string[], string | null][] = [
    ["of visible characters", ["req-1/2"], "req-1/2"],
    ["of 200 characters", ["x".repeat(200)], "x".repeat(200)],
    ["of 201 characters", ["x".repeat(201)], null],
    ["with a space", ["a b"], null],
    ["empty", [""], null],
    ["sent twice", ["a", "b"], null],
  ];
  it.each(ids)("X-Request-Id %s", (_, lines, expected) => {
    expect(requestId(lines)).toBe(expected);
  });

  it("is taken from the request's headers and told on with every message, traceparent first", async () => {
    const store = memoryStore();
    const once = createOncekey({ store });
    const operation = once.transaction({
      name: "a",
      version: 1,
      async run({ send }) {
        await send("t", 1);
        return ok({});
      },
    });
    await once.start();
    const handle = idempotent(operation, { scope: () => scope });
    const post = (key: string, more: Record<string, string>) => {
      const headers = { "idempotency-key": key, "content-type": "application/json", ...more };
      return handle(new Request("http://localhost/a", { method: "POST", headers, body: "{}" }));
    };
    await post("k1", { traceparent: TRACE, "x-request-id": "req-1" });
    await post("k2", { traceparent: "garbage", "x-request-id": "req-2" });
    await post("k3", {});
    expect(store.messages().map(({ correlation }) => correlation)).toEqual([TRACE, "req-2", null]);
  });
});
