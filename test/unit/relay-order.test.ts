import { dead, type OutboxMessage, retry } from "oncekey/outbox";
import { describe, expect, it } from "vitest";
import { gate } from "../support/gate.ts";
import { relayWorld } from "../support/relay-world.ts";

const HOUR = 3_600_000;

/** `a` × count, b × count … of one order each, as messages whose payload is their place. */
function orders(names: string[], count: number) {
  return Array.from({ length: count }, (_, place) =>
    names.map((orderBy) => ({ orderBy, payload: String(place) })),
  ).flat();
}

/** The payloads seen of each order. */
function byOrder(seen: readonly OutboxMessage[]): Record<string, number[]> {
  const found: Record<string, number[]> = {};
  for (const { orderBy, payload } of seen) {
    const places = found[String(orderBy)] ?? [];
    found[String(orderBy)] = [...places, Number(payload)];
  }
  return found;
}

const places = (count: number) => Array.from({ length: count }, (_, place) => place);

describe("messages of one order", () => {
  it("are delivered one after the other, long orders included, while others go on beside them", async () => {
    const w = await relayWorld();
    await w.send(...orders(["a", "b", "c"], 130));
    let running = 0;
    let most = 0;
    const busy = new Set<string | null>();
    const taking = async (message: OutboxMessage) => {
      expect(busy.has(message.orderBy)).toBe(false);
      busy.add(message.orderBy);
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      busy.delete(message.orderBy);
      running--;
      return w.taking(message);
    };
    expect(await w.relay({ topics: { "*": taking } }).runOnce()).toMatchObject({ delivered: 390 });
    expect(byOrder(w.seen)).toEqual({ a: places(130), b: places(130), c: places(130) });
    expect(most).toBe(3);
  });

  it("do not keep a place for ever: others get their turn though an order never ends", async () => {
    const w = await relayWorld();
    await w.send({ orderBy: "endless" }, { orderBy: "short" });
    const taking = async (message: OutboxMessage) => {
      if (message.orderBy === "endless" && w.seen.length < 200) await w.send({ orderBy: "endless" });
      return w.taking(message);
    };
    await w.relay({ topics: { "*": taking }, parallel: 1 }).runOnce();
    const turn = w.seen.findIndex(({ orderBy }) => orderBy === "short");
    expect(turn).toBeGreaterThan(0);
    expect(turn).toBeLessThan(100);
    expect(w.seen.length).toBeGreaterThan(200);
  });

  it("wait for one that is refused for good, and nothing else waits", async () => {
    const w = await relayWorld();
    await w.send(...orders(["poisoned", "healthy"], 5), { orderBy: null, payload: "0" });
    const taking = async (message: OutboxMessage) =>
      message.orderBy === "poisoned" && message.payload === "2" ? dead("refused") : w.taking(message);
    const relay = w.relay({ topics: { "*": taking } });
    expect(await relay.runOnce()).toMatchObject({ delivered: 8, dead: 1 });
    await w.time.advance(HOUR);
    expect(await relay.runOnce()).toMatchObject({ delivered: 0, dead: 0 });
    expect(byOrder(w.seen)).toEqual({ poisoned: [0, 1], healthy: places(5), null: [0] });
    expect(w.told.at(-1)?.error.message).toContain("What was sent after it under the same orderBy waits for it");
  });

  it("wait for one that is to be tried again, and follow it in their order", async () => {
    const w = await relayWorld();
    await w.send(...orders(["a"], 4));
    let failures = 2;
    const taking = async (message: OutboxMessage) =>
      message.payload === "1" && failures-- > 0 ? retry("not now") : w.taking(message);
    const relay = w.relay({ topics: { "*": taking } });
    expect(await relay.runOnce()).toMatchObject({ delivered: 1, postponed: 1 });
    await w.time.advance(1_000);
    expect(await relay.runOnce()).toMatchObject({ delivered: 0, postponed: 1 });
    await w.time.advance(2_000);
    expect(await relay.runOnce()).toMatchObject({ delivered: 3 });
    expect(byOrder(w.seen)).toEqual({ a: [0, 1, 2, 3] });
  });

  it("are of one tenant: another tenant's order of the same name goes on", async () => {
    const w = await relayWorld();
    await w.send({ tenant: "acme", orderBy: "o" }, { tenant: "globex", orderBy: "o" });
    const taking = async (message: OutboxMessage) => (message.tenant === "acme" ? dead("no") : w.taking(message));
    expect(await w.relay({ topics: { "*": taking } }).runOnce()).toMatchObject({ delivered: 1, dead: 1 });
  });
});

describe("a relay that runs", () => {
  it("delivers what comes, with no more at one time than it may", async () => {
    const w = await relayWorld();
    const stop = new AbortController();
    const release = gate();
    const slow = async (message: OutboxMessage) => {
      await release.promise;
      return w.taking(message);
    };
    let started = 0;
    const counted = (message: OutboxMessage) => {
      started++;
      return slow(message);
    };
    const running = w.relay({ topics: { "*": counted }, parallel: 3 }).run(stop.signal);
    await w.time.advance(1_000);
    await w.send(...Array.from({ length: 10 }, () => ({})));
    await w.time.advance(1_000);
    expect(started).toBe(3);
    release.open();
    await w.time.advance(1_000);
    expect(w.seen).toHaveLength(10);
    stop.abort();
    await w.time.advanceUntil(running);
  });

  it("is not held up by one place that hangs", async () => {
    const w = await relayWorld();
    const stop = new AbortController();
    const taking = (message: OutboxMessage) =>
      message.topic === "hangs" ? new Promise<never>(() => {}) : w.taking(message);
    const running = w.relay({ topics: { "*": taking }, parallel: 2 }).run(stop.signal);
    await w.send({ topic: "hangs" });
    for (let message = 0; message < 5; message++) {
      await w.time.advance(1_000);
      await w.send({});
    }
    await w.time.advance(1_000);
    expect(w.seen).toHaveLength(5);
    stop.abort();
    await w.time.advanceUntil(running);
  });

  it("begins nothing after its signal aborted, finishes what it has, and leaves nothing leased", async () => {
    const w = await relayWorld();
    await w.send(...orders(["a"], 3), ...Array.from({ length: 5 }, () => ({ orderBy: null })));
    const stop = new AbortController();
    const release = gate();
    const slow = async (message: OutboxMessage) => {
      await release.promise;
      return w.taking(message);
    };
    const running = w.relay({ topics: { "*": slow }, parallel: 2 }).run(stop.signal);
    await w.time.advance(10);
    stop.abort();
    await w.time.advance(10_000);
    release.open();
    await w.time.advanceUntil(running);
    expect(w.seen).toHaveLength(2);
    // The other six are free at once, with no lease to wait for.
    expect(await w.relay().runOnce()).toMatchObject({ delivered: 6 });
  });

  it("gives back what a claim brings that was under way when it was stopped", async () => {
    const w = await relayWorld();
    await w.send({}, {});
    const stop = new AbortController();
    const { claim } = w.store.outbox;
    w.store.outbox.claim = async (what) => {
      const claimed = await claim(what);
      stop.abort();
      return claimed;
    };
    await w.time.advanceUntil(w.relay().run(stop.signal));
    w.store.outbox.claim = claim;
    expect(w.seen).toEqual([]);
    expect(await w.relay().runOnce()).toMatchObject({ delivered: 2 });
  });

  it("is waited for by close(), and ends by it", async () => {
    const w = await relayWorld();
    await w.send({}, {}, {});
    const release = gate();
    const slow = async (message: OutboxMessage) => {
      await release.promise;
      return w.taking(message);
    };
    const running = w.relay({ topics: { "*": slow }, parallel: 1 }).run(new AbortController().signal);
    await w.time.advance(10);
    const closed = w.once.close({ graceMs: 60_000 });
    await w.time.advance(1_000);
    release.open();
    expect(await w.time.advanceUntil(closed)).toEqual({ drained: true });
    await w.time.advanceUntil(running);
    expect(w.seen).toHaveLength(1);
  });

  it("reports a store that fails, waits longer each time, and goes on when it is back", async () => {
    const w = await relayWorld();
    await w.send({});
    const { claim } = w.store.outbox;
    let claims = 0;
    w.store.outbox.claim = () => {
      claims++;
      return Promise.reject(new Error("away"));
    };
    const stop = new AbortController();
    const running = w.relay({ intervalMs: 100 }).run(stop.signal);
    await w.time.advance(10_000);
    expect(claims).toBeGreaterThan(3);
    expect(claims).toBeLessThan(12);
    expect(w.told.filter(({ at }) => at === "round")).toHaveLength(claims);
    w.store.outbox.claim = claim;
    await w.time.advance(30_000);
    expect(w.seen).toHaveLength(1);
    stop.abort();
    await w.time.advanceUntil(running);
  });

  it("leaves a message whose settling failed to the end of its lease, and delivers it again with its id", async () => {
    const w = await relayWorld();
    const [id] = await w.send({});
    const settle = w.store.outbox.delivered;
    w.store.outbox.delivered = () => Promise.reject(new Error("away"));
    await expect(w.relay({ leaseMs: 5_000 }).runOnce()).rejects.toThrow("away");
    w.store.outbox.delivered = settle;
    await w.time.advance(5_000);
    expect(await w.relay().runOnce()).toMatchObject({ delivered: 1 });
    expect(w.seen).toMatchObject([
      { id, attempt: 1 },
      { id, attempt: 2 },
    ]);
  });
});
