import type { Oncekey } from "oncekey";
import { createRelay, dead, delivered, publisherOf, retry } from "oncekey/outbox";
import { createWebhook, standardWebhooks } from "oncekey/webhooks";
import type { PoolClient } from "pg";
import { describe, expect, it } from "vitest";
import { query } from "../support/postgres.ts";
import { observedWorld, SECRETS } from "./support/observed.ts";

const messages = (event: string) => `messages{topic="order.created",event="${event}"}`;
const deliveries = (result: string) => `deliveries{source="queue",result="${result}"}`;

describe("the counters of messages", () => {
  it("tell what was committed, delivered, postponed and given up", async () => {
    const world = await observedWorld();
    const { once, order } = await world.shop();
    const fates = [delivered(), retry("later", 1), dead("never")];
    const publish = async () => fates.shift() ?? delivered();
    const relay = createRelay(once, { topics: { "*": publisherOf("test", publish) }, parallel: 1 });
    for (const key of ["a", "b", "c"]) await order(key, "sends");
    const counts = await world.counted(() => relay.runOnce());
    expect(counts).toEqual({ [messages("delivered")]: 1, [messages("postponed")]: 1, [messages("dead")]: 1 });
    expect(world.kinds().filter((kind) => kind === "message_sent")).toHaveLength(3);
  });

  it("do not count what a rolled back transaction sent", async () => {
    const world = await observedWorld();
    const { once } = await world.shop();
    const delivery = { tenant: "acme", source: "queue", id: "1" };
    const sending = async (step: { send: (topic: string, payload: unknown) => Promise<void> }) => {
      await step.send("order.created", {});
      throw new Error("later");
    };
    expect(await world.counted(() => once.consume(delivery, sending).catch(() => {}))).toEqual({
      [deliveries("threw")]: 1,
    });
  });
});

const id = (name: string) => ({ tenant: "acme", source: "queue", id: name });
const nothing = async () => {};

/** A numbered message, the n-th of its producer. */
const numbered = (sequence: bigint, epoch = 0n) => ({
  tenant: "acme",
  source: "queue",
  producer: "p",
  epoch,
  sequence,
});

describe("the counters of deliveries", () => {
  it("tell what became of each", async () => {
    const world = await observedWorld();
    const { once } = await world.shop();
    expect(await world.counted(() => once.consume(id("1"), nothing))).toEqual({ [deliveries("done")]: 1 });
    expect(await world.counted(() => once.consume(id("1"), nothing))).toEqual({ [deliveries("duplicate")]: 1 });
    const rejecting = () => once.consume(id("1"), nothing, { onDuplicate: "reject" });
    expect(await world.counted(rejecting)).toEqual({ [deliveries("rejected")]: 1 });
    const batch = [id("1"), id("2"), id("3")];
    expect(await world.counted(() => once.consumeBatch(batch, nothing))).toEqual({
      [deliveries("duplicate")]: 1,
      [deliveries("done")]: 2,
    });
  });

  it("tell numbered ones that are out of order or of a replaced producer", async () => {
    const world = await observedWorld();
    const { once } = await world.shop();
    const take = (sequence: bigint, epoch?: bigint) => () => once.consumeNumbered(numbered(sequence, epoch), nothing);
    expect(await world.counted(take(0n, 1n))).toEqual({ [deliveries("done")]: 1 });
    expect(await world.counted(take(5n, 1n))).toEqual({ [deliveries("out_of_order")]: 1 });
    expect(await world.counted(take(0n, 0n))).toEqual({ [deliveries("fenced")]: 1 });
    const batch = { tenant: "acme", source: "queue", producer: "q", epoch: 0n, first: 7n, count: 2n };
    expect(await world.counted(() => once.consumeNumberedBatch(batch, nothing))).toEqual({
      [deliveries("unknown_producer")]: 1,
    });
  });

  it("tell one that runs elsewhere", async () => {
    const world = await observedWorld();
    const { once } = await world.shop();
    let second: unknown;
    const busy = () =>
      once.consume(id("1"), async () => {
        second = await once.consume(id("1"), nothing, { waitMs: 0 });
      });
    expect(await world.counted(busy)).toEqual({ [deliveries("done")]: 1, [deliveries("unsettled")]: 1 });
    expect(second).toMatchObject({ kind: "unsettled", why: "busy" });
  });

  it("tell webhooks that are refused, which are no deliveries", async () => {
    const world = await observedWorld();
    const { once } = await world.shop();
    const webhook = createWebhook(once as Oncekey<PoolClient>, {
      source: "provider",
      scheme: standardWebhooks(),
      secrets: () => [`whsec_${Buffer.from("a secret of thirty-two bytes ...").toString("base64")}`],
      handler: nothing,
    });
    const body = new TextEncoder().encode(SECRETS.body);
    const headers = { "webhook-id": SECRETS.key, "webhook-timestamp": "1", "webhook-signature": SECRETS.token };
    const refused = await world.counted(() => webhook.receive({ tenant: "acme", headers, body }));
    expect(Object.keys(refused)).toHaveLength(1);
    expect(Object.keys(refused)[0]).toMatch(/^webhook_refusals\{source="provider",why="[a-z_]+"\}$/);
    expect(await query(world.url, "SELECT 1 FROM oncekey.inbox")).toEqual([]);
  });
});
