import { dead, delivered, type OutboxMessage, publisherOf, retry } from "oncekey/outbox";
import { describe, expect, it } from "vitest";
import { gate } from "../support/gate.ts";
import { relayWorld } from "../support/relay-world.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;

describe("a relay", () => {
  it("delivers every message once, as it was sent, and remembers that it did", async () => {
    const w = await relayWorld();
    const [id] = await w.send({ key: "k", orderBy: "o", correlation: "trace" }, { topic: "other" });
    expect(await w.relay().runOnce()).toEqual({ delivered: 2, postponed: 0, dead: 0, purged: 0 });
    expect(w.seen[0]).toEqual({
      id,
      topic: "invoice.created",
      payload: '{"amount":9007199254740993}',
      key: "k",
      orderBy: "o",
      tenant: "acme",
      client: "app",
      context: null,
      correlation: "trace",
      createdAt: new Date(w.time.now()),
      attempt: 1,
    });
    expect(await w.relay().runOnce()).toMatchObject({ delivered: 0 });
    expect(w.seen).toHaveLength(2);
  });

  it("gives a message to the most exact topic that fits", async () => {
    const w = await relayWorld();
    const by: string[] = [];
    const named = (name: string) =>
      publisherOf(name, async ({ topic }) => {
        by.push(`${topic} by ${name}`);
        return delivered();
      });
    const topics = {
      "*": named("all"),
      "a.*": named("prefix"),
      "a.b.*": named("longer prefix"),
      "a.b.c": named("name"),
    };
    await w.send({ topic: "a.b.c" }, { topic: "a.b.d" }, { topic: "a.c" }, { topic: "b" });
    await w.relay({ topics, parallel: 1 }).runOnce();
    expect(by).toEqual(["a.b.c by name", "a.b.d by longer prefix", "a.c by prefix", "b by all"]);
  });

  it("does not deliver before the delay is over", async () => {
    const w = await relayWorld();
    await w.send({ delayMs: MINUTE });
    expect(await w.relay().runOnce()).toMatchObject({ delivered: 0 });
    await w.time.advance(MINUTE);
    expect(await w.relay().runOnce()).toMatchObject({ delivered: 1 });
  });

  it("waits longer with each failed delivery, and never longer than the longest pause", async () => {
    const w = await relayWorld();
    await w.send({});
    const attempts: number[] = [];
    const relay = w.relay({
      topics: {
        "*": async ({ attempt }) => {
          attempts.push(attempt);
          return retry("not now");
        },
      },
      longestPauseMs: 5_000,
    });
    // No jitter in this world: 1, 2, 4, 5, 5 seconds.
    for (const pauseMs of [0, 1_000, 2_000, 4_000, 5_000, 5_000]) {
      if (pauseMs > 0) {
        await w.time.advance(pauseMs - 1);
        expect(await relay.runOnce()).toMatchObject({ postponed: 0 });
        await w.time.advance(1);
      }
      expect(await relay.runOnce()).toMatchObject({ postponed: 1 });
    }
    expect(attempts).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("waits as long as the other side asked for, within its own bounds", async () => {
    const w = await relayWorld({ random: { bytes: (n) => crypto.getRandomValues(new Uint8Array(n)), unit: () => 0 } });
    await w.send({});
    const asked = [30_000, DAY];
    const relay = w.relay({ topics: { "*": async () => retry("later", asked.shift()) }, longestPauseMs: MINUTE });
    expect(await relay.runOnce()).toMatchObject({ postponed: 1 });
    await w.time.advance(29_999);
    expect(await relay.runOnce()).toMatchObject({ postponed: 0 });
    await w.time.advance(1);
    expect(await relay.runOnce()).toMatchObject({ postponed: 1 });
    await w.time.advance(MINUTE);
    expect(await relay.runOnce()).toMatchObject({ postponed: 1 });
  });

  it("gives a message up after its last attempt, and says so with nothing of its payload", async () => {
    const w = await relayWorld();
    const [id] = await w.send({ payload: '"secret"', topic: "poison" });
    const relay = w.relay({ topics: { "*": async () => retry("the queue is full") }, maxAttempts: 3 });
    for (let attempt = 1; attempt <= 2; attempt++) {
      expect(await relay.runOnce()).toMatchObject({ postponed: 1 });
      await w.time.advance(MINUTE);
    }
    expect(await relay.runOnce()).toMatchObject({ dead: 1 });
    await w.time.advance(DAY);
    expect(await relay.runOnce()).toMatchObject({ postponed: 0, dead: 0 });
    expect(await w.waiting()).toEqual([{ topic: "poison", state: "dead", count: 1 }]);
    const last = w.told.at(-1);
    expect(last).toMatchObject({
      operation: "relay",
      at: "dead letter",
      error: { code: "oncekey_message_undelivered" },
    });
    expect(last?.error.message).toContain(id);
    expect(last?.error.message).toContain("the queue is full");
    expect(w.told.map(({ error }) => error.message).join()).not.toContain("secret");
  });

  it("gives a message up at once where its publisher says so", async () => {
    const w = await relayWorld();
    await w.send({});
    expect(await w.relay({ topics: { "*": async () => dead("gone") } }).runOnce()).toMatchObject({ dead: 1 });
  });

  it("takes a throw, even at once, and an answer that is none for a failed delivery, and names no message of theirs", async () => {
    const w = await relayWorld();
    await w.send({ topic: "throws" }, { topic: "rejects" }, { topic: "answers nothing" });
    const refused = Object.assign(new Error("postgres://user:password@host"), { code: "ECONNREFUSED" });
    const relay = w.relay({
      topics: {
        throws: () => {
          throw new TypeError("password");
        },
        rejects: publisherOf("broker", () => Promise.reject(refused)),
        "answers nothing": (async () => {}) as never,
      },
    });
    expect(await relay.runOnce()).toMatchObject({ postponed: 3 });
    const said = w.told.map(({ error }) => error.message).join("\n");
    expect(said).toContain("the function of throws threw TypeError");
    expect(said).toContain("broker threw Error ECONNREFUSED");
    expect(said).toContain("neither delivered, retry nor dead");
    expect(said).not.toContain("password");
    // Whoever listens gets the error itself, as with every other one.
    expect(w.told.find(({ at }) => at === "delivery by broker")?.error.cause).toBe(refused);
  });

  it("says once a minute that a broker is away, not once a message", async () => {
    const w = await relayWorld();
    await w.send(...Array.from({ length: 30 }, () => ({})));
    const relay = w.relay({ topics: { "*": publisherOf("broker", async () => retry("it cannot be reached")) } });
    expect(await relay.runOnce()).toMatchObject({ postponed: 30 });
    expect(w.told).toHaveLength(1);
    await w.time.advance(MINUTE);
    await relay.runOnce();
    expect(w.told).toHaveLength(2);
  });

  it("stops waiting for a publisher at the time-out, aborts its signal, and delivers again", async () => {
    const w = await relayWorld();
    await w.send({});
    const signals: AbortSignal[] = [];
    const hanging = async (_message: OutboxMessage, signal: AbortSignal) => {
      signals.push(signal);
      return new Promise<never>(() => {});
    };
    const relay = w.relay({ topics: { "*": publisherOf("hanging", hanging) }, timeoutMs: 5_000 });
    const round = relay.runOnce();
    await w.time.advance(4_999);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
    expect(await w.time.advanceUntil(round)).toMatchObject({ postponed: 1 });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(w.told[0]?.error.message).toContain("hanging gave no answer within 5000 ms");
    await w.time.advance(MINUTE);
    expect(await w.relay().runOnce()).toMatchObject({ delivered: 1 });
    expect(w.seen[0]).toMatchObject({ attempt: 2 });
  });

  it("keeps its lease for as long as the publisher works", async () => {
    const w = await relayWorld();
    await w.send({});
    const arrived = gate();
    const slow = async () => {
      await arrived.promise;
      return delivered();
    };
    const round = w.relay({ topics: { "*": slow }, leaseMs: 3_000, timeoutMs: MINUTE }).runOnce();
    await w.time.advance(20_000);
    expect(await w.relay().runOnce()).toMatchObject({ delivered: 0 });
    arrived.open();
    expect(await w.time.advanceUntil(round)).toMatchObject({ delivered: 1 });
  });

  it("keeps its lease over an outage of the store that is shorter than it", async () => {
    const w = await relayWorld();
    await w.send({});
    const arrived = gate();
    const { renew } = w.store.outbox;
    const slow = async () => {
      await arrived.promise;
      return delivered();
    };
    const round = w.relay({ topics: { "*": slow }, leaseMs: 3_000, timeoutMs: MINUTE }).runOnce();
    await w.time.advance(500);
    w.store.outbox.renew = () => Promise.reject(new Error("away"));
    await w.time.advance(2_000);
    w.store.outbox.renew = renew;
    await w.time.advance(10_000);
    expect(await w.relay().runOnce()).toMatchObject({ delivered: 0 });
    arrived.open();
    expect(await w.time.advanceUntil(round)).toMatchObject({ delivered: 1 });
  });

  it("lets go of a message whose lease it lost, and leaves it to the relay that has it", async () => {
    const w = await relayWorld();
    await w.send({});
    const arrived = gate();
    const signals: AbortSignal[] = [];
    const slow = async (_message: OutboxMessage, signal: AbortSignal) => {
      signals.push(signal);
      await arrived.promise;
      return delivered();
    };
    const { renew } = w.store.outbox;
    w.store.outbox.renew = () => Promise.reject(new Error("away"));
    const round = w.relay({ topics: { "*": slow }, leaseMs: 3_000, timeoutMs: MINUTE }).runOnce();
    await w.time.advance(3_000);
    w.store.outbox.renew = renew;
    expect(signals[0]?.reason).toMatchObject({ name: "DeliveryCut", why: "lease_lost" });
    expect(await w.relay().runOnce()).toMatchObject({ delivered: 1 });
    arrived.open();
    // Neither delivered nor postponed: the other relay's result stands.
    expect(await w.time.advanceUntil(round)).toEqual({ delivered: 0, postponed: 0, dead: 0, purged: 0 });
    expect(w.seen).toMatchObject([{ attempt: 2 }]);
  });

  it("sends nothing when its lease was over before it could begin", async () => {
    const w = await relayWorld();
    await w.send({});
    const { claim } = w.store.outbox;
    // The answer comes late, or this process slept.
    w.store.outbox.claim = async (given) => {
      const claimed = await claim(given);
      await w.time.advance(3_000);
      return claimed;
    };
    expect(await w.relay({ leaseMs: 3_000 }).runOnce()).toEqual({ delivered: 0, postponed: 0, dead: 0, purged: 0 });
    expect(w.seen).toEqual([]);
    w.store.outbox.claim = claim;
    expect(await w.relay().runOnce()).toMatchObject({ delivered: 1 });
  });

  it("gives up a message whose relays die before any delivery comes to an end", async () => {
    const w = await relayWorld();
    await w.send({});
    for (let death = 1; death <= 3; death++) {
      await w.store.outbox.claim({ topics: ["*"], limit: 1, leaseMs: 1_000 });
      await w.time.advance(1_000);
    }
    expect(await w.relay({ maxAttempts: 3 }).runOnce()).toMatchObject({ dead: 1, delivered: 0 });
    expect(w.seen).toEqual([]);
  });

  it("deletes delivered messages in batches once they were kept long enough", async () => {
    const w = await relayWorld();
    await w.send(...Array.from({ length: 1_200 }, () => ({})));
    const relay = w.relay({ keepDeliveredMs: DAY });
    expect(await relay.runOnce()).toMatchObject({ delivered: 1_200, purged: 0 });
    await w.time.advance(DAY);
    expect(await relay.runOnce()).toMatchObject({ delivered: 0, purged: 1_200 });
  });

  it("leaves topics alone that it does not know, and names them once a minute while it runs", async () => {
    const w = await relayWorld();
    await w.send({ topic: "known" }, { topic: "mistyped" }, { topic: "mistyped" });
    const stop = new AbortController();
    const running = w.relay({ topics: { known: w.taking } }).run(stop.signal);
    await w.time.advance(2.5 * MINUTE);
    expect(w.seen).toMatchObject([{ topic: "known" }]);
    expect(await w.waiting()).toEqual([{ topic: "mistyped", state: "pending", count: 2 }]);
    expect(w.told.map(({ error }) => error.code)).toEqual(["oncekey_topic_unknown", "oncekey_topic_unknown"]);
    expect(w.told[0]?.error.message).toContain(
      '2 messages wait for topics that this relay has no destination for: "mistyped"',
    );
    stop.abort();
    await w.time.advanceUntil(running);
  });
});
