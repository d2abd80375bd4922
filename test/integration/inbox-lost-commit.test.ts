import { type ConsumeOptions, createOncekey, type IncomingDelivery } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sharedServer, testPool } from "../support/postgres.ts";
import { insertEffect } from "./support/inbox-effects.ts";
import { COMMIT, type HowLost, type LossyProxy, lossyProxy } from "./support/lossy-proxy.ts";
import { effects, ordersDatabase } from "./support/rows.ts";

let url: string;
let proxy: LossyProxy;
const pools: pg.Pool[] = [];

beforeAll(async () => {
  url = await ordersDatabase();
  proxy = await lossyProxy((await sharedServer()).port);
});

afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.end()));
  await proxy.close();
});

const delivery = (id: string): IncomingDelivery => ({ tenant: "acme", source: "payments", id });

async function consumer(pool: pg.Pool) {
  const once = createOncekey({ store: postgresStore(fromPg(pool)), waitMs: 20_000, onError: () => {} });
  await once.start();
  const consume = (id: string, options: ConsumeOptions = {}) =>
    once.consume(
      delivery(id),
      async ({ tx }) => {
        await insertEffect(tx, id);
        return "made";
      },
      options,
    );
  const consumeBatch = async (...ids: string[]) => {
    const handler = async ({ tx, fresh }: { tx: pg.PoolClient; fresh: readonly IncomingDelivery[] }) => {
      for (const { id } of fresh) await insertEffect(tx, id);
    };
    return (await once.consumeBatch(ids.map(delivery), handler)).map(({ kind }) => kind);
  };
  const consumeNumbered = (producer: string, waitMs = 20_000) =>
    once.consumeNumbered(
      { tenant: "acme", source: "meter", producer, epoch: 0n, sequence: 0n },
      ({ tx }) => insertEffect(tx, producer),
      { waitMs },
    );
  return { consume, consumeBatch, consumeNumbered };
}

/** The consumer whose network loses things, and another one on a good network, to which redelivery goes. */
async function pair() {
  const pool = new pg.Pool({ connectionString: proxy.urlOf(url), max: 4 });
  pool.on("error", () => {});
  pools.push(pool);
  return { losing: await consumer(pool), other: await consumer(testPool(url)) };
}

const UNKNOWN = { kind: "unsettled", why: "commit_unknown", retryAfterMs: expect.any(Number) };
const NOT_ARRIVED: readonly HowLost[] = ["message", "in_flight"];

describe("a delivery whose COMMIT gets no answer", () => {
  const modes: ["acknowledge" | "replay" | "reject", object][] = [
    ["acknowledge", { kind: "duplicate" }],
    ["replay", { kind: "replayed", value: "made" }],
    // What it did itself it must not reject: a mark in the row tells.
    ["reject", { kind: "done", value: "made" }],
  ];
  it.each(modes)("but arrived (%s): the row tells", async (onDuplicate, expected) => {
    const id = `answer-${onDuplicate}`;
    const { losing } = await pair();
    const loss = proxy.loseNext(COMMIT, "answer");
    const result = await losing.consume(id, { onDuplicate });
    await loss.met;
    expect(result).toMatchObject(expected);
    expect(await effects(url, id)).toHaveLength(1);
  });

  it.each(NOT_ARRIVED)("(%s) is called unknown; its redelivery has the effect, once", async (how) => {
    const { losing, other } = await pair();
    const loss = proxy.loseNext(COMMIT, how);
    expect(await losing.consume(how)).toEqual(UNKNOWN);
    if (how === "in_flight") {
      // Its transaction still holds the lock.
      expect(await other.consume(how, { waitMs: 100 })).toMatchObject({ kind: "unsettled", why: "busy" });
    }
    const redelivered = other.consume(how);
    loss.arrive();
    expect((await redelivered).kind).toBe(how === "in_flight" ? "duplicate" : "done");
    expect((await losing.consume(how)).kind).toBe("duplicate");
    expect(await effects(url, how)).toHaveLength(1);
  });
});

describe("a batch whose COMMIT gets no answer", () => {
  it("but arrived: the rows tell", async () => {
    const { losing } = await pair();
    const loss = proxy.loseNext(COMMIT, "answer");
    expect(await losing.consumeBatch("batch-1", "batch-2")).toEqual(["duplicate", "duplicate"]);
    await loss.met;
    expect(await effects(url, "batch-1")).toHaveLength(1);
  });

  it("nor arrived: all of it is unknown, and its redelivery has the effects, once", async () => {
    const { losing, other } = await pair();
    proxy.loseNext(COMMIT, "message");
    expect(await losing.consumeBatch("batch-3", "batch-4")).toEqual(["unsettled", "unsettled"]);
    await expect.poll(() => other.consumeBatch("batch-3", "batch-4"), { timeout: 20_000 }).toEqual(["done", "done"]);
    expect(await losing.consumeBatch("batch-3", "batch-4")).toEqual(["duplicate", "duplicate"]);
    expect(await effects(url, "batch-3")).toHaveLength(1);
  });
});

describe("a numbered message whose COMMIT gets no answer", () => {
  it("but arrived: its producer's number tells", async () => {
    const { losing } = await pair();
    const loss = proxy.loseNext(COMMIT, "answer");
    expect(await losing.consumeNumbered("numbered-1")).toEqual({ kind: "duplicate" });
    await loss.met;
    expect(await effects(url, "numbered-1")).toHaveLength(1);
  });

  it.each(NOT_ARRIVED)("(%s) is called unknown; its redelivery has the effect, once", async (how) => {
    const { losing, other } = await pair();
    const producer = `numbered-${how}`;
    const loss = proxy.loseNext(COMMIT, how);
    expect(await losing.consumeNumbered(producer)).toEqual(UNKNOWN);
    const redelivered = other.consumeNumbered(producer);
    loss.arrive();
    expect((await redelivered).kind).toBe(how === "in_flight" ? "duplicate" : "done");
    expect(await effects(url, producer)).toHaveLength(1);
  });
});
