import { createHash } from "node:crypto";
import { createOncekey, type EncryptionKey, type Oncekey, ok } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { createRelay, delivered, type RelayOptions } from "oncekey/outbox";
import { describe, expect, it } from "vitest";
import { relayWorld } from "../support/relay-world.ts";

const MINUTE = 60_000;
const keyOf = (id: number): EncryptionKey => ({ id, key: createHash("sha256").update(String(id)).digest() });

/** Sends one message from an operation whose binding declared a context. */
async function sendWithContext(once: Oncekey<never>, tenant: string, context: unknown) {
  const send = once.transaction({
    name: `send.${tenant}`,
    version: 1,
    async run(step) {
      await step.send("charge.settled", { amount: 12345678901234567890n });
      return ok({});
    },
  });
  await once.start();
  await once.run(send, { scope: { tenant, client: null }, key: "k", input: {}, context });
}

describe("the context of a message", () => {
  it("reaches the publisher as the operation's binding declared it, through encryption", async () => {
    const store = memoryStore();
    const make = (encryptionKeys: EncryptionKey[]) => createOncekey({ store: store as never, encryptionKeys }) as never;
    await sendWithContext(make([keyOf(1)]), "acme", { pspAccount: "acct_1", since: new Date(0), amount: 5n });
    const reader = make([keyOf(2), keyOf(1)]) as Oncekey<never>;
    await reader.start();
    const seen: unknown[] = [];
    const relay = createRelay(reader, {
      topics: {
        "*": async ({ context, payload }) => {
          seen.push(context, payload);
          return delivered();
        },
      },
    });
    expect(await relay.runOnce()).toMatchObject({ delivered: 1 });
    expect(seen).toEqual([{ pspAccount: "acct_1", since: new Date(0), amount: 5n }, '{"amount":12345678901234567890}']);
  });

  it("that was changed makes a dead letter at once, not an endless try", async () => {
    const w = await relayWorld();
    await w.send({ context: Uint8Array.of(1, 0x7b) });
    expect(await w.relay().runOnce()).toMatchObject({ dead: 1, delivered: 0 });
    expect(w.told[0]?.error.message).toContain("its context cannot be opened (oncekey_store_broken)");
    expect(w.seen).toEqual([]);
  });

  it("of another message does not open: its place is bound to it", async () => {
    const w = await relayWorld({ encryptionKeys: [keyOf(1)] });
    const { cipher } = w.once.internals.context;
    const sealed = cipher.seal(Buffer.from("another id"), "message", Uint8Array.of(1, 0x7b, 0x7d));
    await w.send({ context: sealed });
    expect(await w.relay().runOnce()).toMatchObject({ dead: 1 });
  });

  it("under a key or in a version that only newer processes have is left to them", async () => {
    const w = await relayWorld({ encryptionKeys: [keyOf(1)] });
    await w.send({ context: Uint8Array.of(0x81, 9, 0, 0) }, { context: Uint8Array.of(2, 0x7b, 0x7d) });
    expect(await w.relay().runOnce()).toMatchObject({ postponed: 2, dead: 0 });
    await w.time.advance(MINUTE);
    expect(await w.relay({ maxAttempts: 2 }).runOnce()).toMatchObject({ dead: 2 });
  });
});

describe("a relay's options", () => {
  const topics = { "*": async () => delivered() };
  const bad: [string, unknown][] = [
    ["no topics", {}],
    ["topics that name none", { topics: {} }],
    ["an empty topic", { topics: { "": topics["*"] } }],
    ["a star in the middle", { topics: { "a.*.b": topics["*"] } }],
    ["two stars", { topics: { "a.**": topics["*"] } }],
    ["a destination that cannot publish", { topics: { a: { name: "x" } } }],
    ["no destination", { topics: { a: undefined } }],
    ["parallel 0", { topics, parallel: 0 }],
    ["a fraction", { topics, maxAttempts: 1.5 }],
    ["text", { topics, intervalMs: "100" }],
    ["a time-out that timers cannot count", { topics, timeoutMs: 2 ** 31 }],
    ["a lease that cannot be renewed in time", { topics, leaseMs: 50 }],
    ["not a number", { topics, keepDeliveredMs: Number.NaN }],
  ];

  it.each(bad)("refuses %s", async (_what, options) => {
    const { once } = await relayWorld();
    expect(() => createRelay(once, options as RelayOptions)).toThrow(
      expect.objectContaining({ code: "oncekey_config_invalid" }),
    );
  });

  it("takes an option given as undefined for one not given", async () => {
    const { once } = await relayWorld();
    expect(() => createRelay(once, { topics, parallel: undefined } as never)).not.toThrow();
  });

  it("says so when it is told to run before start()", async () => {
    const once = createOncekey({ store: memoryStore() });
    const relay = createRelay(once, { topics });
    const notStarted = { code: "oncekey_not_started" };
    await expect(relay.runOnce()).rejects.toMatchObject(notStarted);
    await expect(relay.run(new AbortController().signal)).rejects.toMatchObject(notStarted);
  });
});
