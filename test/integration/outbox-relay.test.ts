import { fileURLToPath } from "node:url";
import { fromPg } from "oncekey/drivers/pg";
import { createRelay, dead, delivered, type OutboxMessage, type RelayOptions } from "oncekey/outbox";
import { discardMessages, listMessages, retryMessages } from "oncekey/postgres";
import { beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { fleetOf } from "../../lab/support/fleet.ts";
import type { RelaySettings } from "../../lab/support/outbox-world.ts";
import { gate } from "../support/gate.ts";
import { atEnd, passTime, query } from "../support/postgres.ts";
import { startReceiver } from "../support/webhook-receiver.ts";
import { type OutboxWorld, outboxWorld } from "./support/outbox.ts";

let world: OutboxWorld;
let seen: OutboxMessage[];

beforeAll(async () => {
  world = await outboxWorld();
});
beforeEach(async () => {
  seen = [];
  await world.clear();
});

const taking = async (message: OutboxMessage) => {
  seen.push(message);
  return delivered();
};
const relay = (options: Partial<RelayOptions> = {}) => createRelay(world.once, { topics: { "*": taking }, ...options });
const payloads = () => seen.map(({ payload }) => JSON.parse(payload) as unknown);

describe("several relays on one outbox", () => {
  it("deliver each message once between them, in order for each orderBy", async () => {
    const orders = ["a", "b", "c", "d", "e"];
    for (let place = 0; place < 20; place++) {
      await world.transaction(async ({ send }) => {
        for (const orderBy of orders) await send("lab.sent", { orderBy, place }, { orderBy });
        await send("lab.sent", { orderBy: null, place });
      });
    }
    const rounds = Array.from({ length: 3 }, () => relay({ parallel: 4 }).runOnce());
    const reports = await Promise.all(rounds);
    // A round ends when nothing is due any more; what another one's chain left short is taken by the next.
    reports.push(await relay().runOnce());
    expect(reports.reduce((sum, report) => sum + report.delivered, 0)).toBe(120);
    expect(new Set(seen.map(({ id }) => id)).size).toBe(120);
    expect(seen).toHaveLength(120);
    for (const orderBy of orders) {
      const places = seen.filter((one) => one.orderBy === orderBy).map(({ payload }) => JSON.parse(payload).place);
      expect(places).toEqual(Array.from({ length: 20 }, (_, place) => place));
    }
  });

  it("leave to its holder what is leased, until the holder is silent for too long", async () => {
    const hold = gate();
    await world.transaction(({ send }) => send("lab.sent", 1));
    const slow = async (message: OutboxMessage) => {
      await hold.promise;
      return taking(message);
    };
    const round = relay({ topics: { "*": slow } }).runOnce();
    await vi.waitFor(async () => expect((await listMessages(fromPg(world.pool)))[0]?.leased).toBe(true));
    expect(await relay().runOnce()).toMatchObject({ delivered: 0 });
    await passTime(world.url, 60_000);
    expect(await relay().runOnce()).toMatchObject({ delivered: 1 });
    hold.open();
    expect(await round).toMatchObject({ delivered: 0, postponed: 0 });
    expect(seen.map(({ attempt }) => attempt)).toEqual([2, 1]);
  });
});

describe("transactions that commit in another order than they sent in", () => {
  it("lose no message: one that commits late is delivered after those that came after it", async () => {
    const late = gate();
    const sent = gate();
    const slow = world.transaction(async ({ send }) => {
      await send("lab.sent", "late");
      sent.open();
      await late.promise;
    });
    await sent.promise;
    await world.transaction(({ send }) => send("lab.sent", "early"));
    expect(await relay().runOnce()).toMatchObject({ delivered: 1 });
    late.open();
    await slow;
    expect(await relay().runOnce()).toMatchObject({ delivered: 1 });
    expect(payloads()).toEqual(["early", "late"]);
  });

  it("are put in a row by a common orderBy, and hold up nobody else", async () => {
    const late = gate();
    const sent = gate();
    const first = world.transaction(async ({ send }) => {
      await send("lab.sent", 1, { orderBy: "o" });
      sent.open();
      await late.promise;
    });
    await sent.promise;
    const second = world.transaction(({ send }) => send("lab.sent", 2, { orderBy: "o" }));
    await world.transaction(({ send }) => send("lab.sent", 3, { orderBy: "other" }));
    await world.transaction(({ send }) => send("lab.sent", 4, { orderBy: "o" }), { tenant: "globex" });
    expect(await relay().runOnce()).toMatchObject({ delivered: 2 });
    late.open();
    await Promise.all([first, second]);
    expect(await relay().runOnce()).toMatchObject({ delivered: 2 });
    expect(payloads().slice(2)).toEqual([1, 2]);
  });

  it("and are rolled back, leave nothing to deliver and no gap that holds others up", async () => {
    const failing = world.transaction(async ({ send }) => {
      await send("lab.sent", "never", { orderBy: "o" });
      throw new Error("rolled back");
    });
    await expect(failing).rejects.toThrow("rolled back");
    await world.transaction(({ send }) => send("lab.sent", "next", { orderBy: "o" }));
    expect(await relay().runOnce()).toMatchObject({ delivered: 1 });
    expect(payloads()).toEqual(["next"]);
  });
});

describe("a relay that is killed in the middle of a delivery", () => {
  it("leaves the message to another one, which delivers it under the same id", async () => {
    const receiver = await startReceiver();
    const asked = gate();
    receiver.answer = () => asked.open();
    await world.transaction(async ({ send }) => {
      await send("lab.sent", "first", { orderBy: "o" });
      await send("lab.sent", "second", { orderBy: "o" });
    });
    const program = fileURLToPath(new URL("../../lab/support/outbox-relay.ts", import.meta.url));
    const fleet = await fleetOf({ "outbox-relay": program });
    atEnd(() => fleet.close());
    const times = { leaseMs: 30_000, timeoutMs: 30_000, intervalMs: 50, longestPauseMs: 1_000, maxAttempts: 5 };
    const settings: RelaySettings = { url: world.url, sinkUrl: receiver.url, ...times };
    const victim = await fleet.start("outbox-relay", settings);
    await asked.promise;
    await victim.kill();
    expect(await relay().runOnce()).toMatchObject({ delivered: 0 });
    await passTime(world.url, times.leaseMs);
    expect(await relay().runOnce()).toMatchObject({ delivered: 2 });
    expect(payloads()).toEqual(["first", "second"]);
    expect(seen.map(({ attempt }) => attempt)).toEqual([2, 1]);
    expect(JSON.parse(receiver.received[0]?.body ?? "{}")).toMatchObject({ id: seen[0]?.id });
  });
});

describe("an operator", () => {
  const refusing = async ({ payload }: OutboxMessage) => (payload === "1" ? dead("not for us") : delivered());

  async function oneDead(): Promise<string> {
    await world.transaction(async ({ send }) => {
      for (const place of [0, 1, 2]) await send("lab.sent", place, { orderBy: "o" });
    });
    expect(await relay({ topics: { "*": refusing } }).runOnce()).toMatchObject({ delivered: 1, dead: 1 });
    const [letter] = await listMessages(fromPg(world.pool), { state: "dead" });
    expect(letter).toMatchObject({ topic: "lab.sent", reason: "not for us", attempts: 1 });
    return letter?.id ?? "";
  }

  it("has a dead letter delivered after all, under its id, and what waited for it follows", async () => {
    const id = await oneDead();
    expect(await retryMessages(fromPg(world.pool), { ids: [id] })).toBe(1);
    expect(await relay().runOnce()).toMatchObject({ delivered: 2 });
    expect(seen).toMatchObject([{ id, payload: "1", attempt: 1 }, { payload: "2" }]);
  });

  it("discards a dead letter, and what waited for it goes on", async () => {
    await oneDead();
    expect(await discardMessages(fromPg(world.pool), { deadOf: "lab.*" })).toBe(1);
    expect(await relay().runOnce()).toMatchObject({ delivered: 1 });
    expect(payloads()).toEqual([2]);
  });

  it("finds the reason of a delivery that is tried again, without payload or secret", async () => {
    await world.transaction(({ send }) => send("lab.sent", "payload"));
    const refused = Object.assign(new Error("amqp://user:password@broker"), { code: "ECONNREFUSED" });
    expect(await relay({ topics: { "*": () => Promise.reject(refused) } }).runOnce()).toMatchObject({ postponed: 1 });
    expect(await listMessages(fromPg(world.pool))).toMatchObject([
      { state: "pending", attempts: 1, reason: "the function of * threw Error ECONNREFUSED" },
    ]);
  });
});

describe("delivered messages", () => {
  it("are deleted once they were kept long enough; waiting and dead ones never are", async () => {
    await world.transaction(async ({ send }) => {
      for (const place of [0, 1, 2]) await send("lab.sent", place);
    });
    await relay({ topics: { "*": async ({ payload }) => (payload === "1" ? dead("no") : delivered()) } }).runOnce();
    await passTime(world.url, 3_600_000);
    expect(await relay({ keepDeliveredMs: 3_600_000 }).runOnce()).toMatchObject({ purged: 2 });
    expect(await query(world.url, "SELECT state FROM oncekey.outbox")).toEqual([{ state: "dead" }]);
  });
});
