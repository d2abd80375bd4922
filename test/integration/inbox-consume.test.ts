import {
  type BatchStep,
  type ConsumeOptions,
  createOncekey,
  type IncomingDelivery,
  type NumberedMessage,
} from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { contentId } from "oncekey/inbox";
import { postgresStore } from "oncekey/postgres";
import type pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { gate } from "../support/gate.ts";
import { passTime, testPool } from "../support/postgres.ts";
import { consumeOne, insertEffect } from "./support/inbox-effects.ts";
import { startInboxWorker } from "./support/inbox-workers.ts";
import { tally } from "./support/orders.ts";
import { recordingPool } from "./support/recording-pool.ts";
import { effects, ordersDatabase } from "./support/rows.ts";

const DAY_MS = 86_400_000;

let url: string;

beforeAll(async () => {
  url = await ordersDatabase();
});

const delivery = (id: string, more: Partial<IncomingDelivery> = {}): IncomingDelivery => ({
  ...{ tenant: "acme", source: "payments", id },
  ...more,
});

/** An instance as a consumer of its own: what it shares with others is the database. */
async function consumer(pool: pg.Pool = testPool(url)) {
  const once = createOncekey({ store: postgresStore(fromPg(pool)), waitMs: 20_000, onError: () => {} });
  await once.start();
  const consume = (given: IncomingDelivery, options?: ConsumeOptions) => consumeOne(once, given, options);
  const consumeBatch = (ids: readonly string[], then?: (step: BatchStep<pg.PoolClient, IncomingDelivery>) => unknown) =>
    once.consumeBatch(
      ids.map((id) => delivery(id)),
      async (step) => {
        for (const { id } of step.fresh) await insertEffect(step.tx, id);
        await then?.(step);
      },
    );
  const consumeNumbered = (message: Partial<NumberedMessage>, then?: () => unknown) => {
    const given = { tenant: "acme", source: "meter", producer: "p", epoch: 0n, sequence: 0n, ...message };
    return once.consumeNumbered(given, async ({ tx }) => {
      await insertEffect(tx, given.producer, Number(given.sequence));
      await then?.();
    });
  };
  return { once, consume, consumeBatch, consumeNumbered };
}

describe("the statements", () => {
  it("of a fresh delivery are the fewest; of a duplicate one look-up", async () => {
    const { pool, take } = recordingPool(url);
    const { consume } = await consumer(pool);
    take();
    await consume(delivery("counted"));
    expect(take()).toEqual([
      "deliveries",
      "BEGIN",
      "try_locks",
      "deliveries",
      "INSERT INTO effect",
      "accept",
      "COMMIT",
    ]);
    expect((await consume(delivery("counted"))).kind).toBe("duplicate");
    expect(take()).toEqual(["deliveries"]);
  });

  it("of a batch are those of one delivery, however many there are", async () => {
    const { pool, take } = recordingPool(url);
    const { once } = await consumer(pool);
    const ids = Array.from({ length: 100 }, (_, index) => delivery(`batched-${index}`));
    take();
    const results = await once.consumeBatch(ids, async ({ tx, fresh }) => insertEffect(tx, "batched", fresh.length));
    expect(tally(results)).toEqual({ done: 100 });
    expect(take()).toEqual([
      "deliveries",
      "BEGIN",
      "try_locks",
      "deliveries",
      "INSERT INTO effect",
      "accept",
      "COMMIT",
    ]);
    expect(await effects(url, "batched")).toMatchObject([{ amount: 100 }]);
  });

  it("of a numbered message are one transaction", async () => {
    const { pool, take } = recordingPool(url);
    const { consumeNumbered } = await consumer(pool);
    take();
    await consumeNumbered({ producer: "counted" });
    expect(take()).toEqual(["BEGIN", "try_locks", "producer", "INSERT INTO effect", "move_producer", "COMMIT"]);
    expect((await consumeNumbered({ producer: "counted" })).kind).toBe("duplicate");
    expect(take()).toEqual(["BEGIN", "try_locks", "producer", "ROLLBACK"]);
  });

  it("of duplicates that wait in one process are none while they wait", async () => {
    const { pool, take } = recordingPool(url);
    const { once, consume } = await consumer(pool);
    const entered = gate();
    const finish = gate();
    const first = once.consume(delivery("waited"), async () => {
      entered.open();
      await finish.promise;
    });
    await entered.promise;
    take();
    expect(await consume(delivery("waited"), { waitMs: 100 })).toMatchObject({ kind: "unsettled", why: "busy" });
    expect(take()).toEqual([]);
    finish.open();
    expect((await first).kind).toBe("done");
  });
});

describe("one event", () => {
  it("that 50 consumers in 2 processes get at the same time has one effect", async () => {
    const workers = await Promise.all([startInboxWorker(url), startInboxWorker(url)]);
    const deliveries = Array.from({ length: 50 }, (_, index) => workers[index % 2]?.consume(delivery("raced")));
    const kinds = (await Promise.all(deliveries)).map((kind) => ({ kind: String(kind) }));
    expect(tally(kinds)).toEqual({ done: 1, duplicate: 49 });
    expect(await effects(url, "raced")).toHaveLength(1);
  });

  it("whose consumer is killed between commit and acknowledgement is acknowledged on redelivery, without effect", async () => {
    const worker = await startInboxWorker(url);
    await worker.consumeUntil(delivery("killed-after"), "arrival:committed");
    await worker.kill();
    const { consume } = await consumer();
    expect((await consume(delivery("killed-after"))).kind).toBe("duplicate");
    expect(await effects(url, "killed-after")).toMatchObject([{ pid: worker.pid }]);
  });

  it("whose consumer is killed before its commit has its effect on redelivery, once", async () => {
    const worker = await startInboxWorker(url);
    await worker.consumeUntil(delivery("killed-before"), "accept:after");
    const { consume } = await consumer();
    const waiting = consume(delivery("killed-before"));
    await worker.kill();
    expect((await waiting).kind).toBe("done");
    expect(await effects(url, "killed-before")).toMatchObject([{ pid: process.pid }]);
  });
});

describe("remembering", () => {
  it("works as SQS FIFO's window: 5 minutes, by content, without looking at the body, longer than the message", async () => {
    const { once, consume } = await consumer();
    const window = { rememberMs: 300_000 };
    const body = delivery(contentId('{"amount":5}'));
    expect((await consume(body, window)).kind).toBe("done");
    await passTime(url, 299_000);
    expect((await consume(body, window)).kind).toBe("duplicate");
    await passTime(url, 2_000);
    expect((await consume(body, window)).kind).toBe("done");
    expect(await effects(url, body.id)).toHaveLength(2);
    // A deduplication id of the sender's own: the second body is never looked at.
    const handler = (amount: number) =>
      once.consume(delivery("dedup-1"), ({ tx }) => insertEffect(tx, "dedup-1", amount));
    expect((await handler(1)).kind).toBe("done");
    expect((await handler(2)).kind).toBe("duplicate");
    expect(await effects(url, "dedup-1")).toMatchObject([{ amount: 1 }]);
  });

  it("works as FIX has it: one ClOrdID a session day, duplicates rejected, possible resends looked up", async () => {
    const { consume } = await consumer();
    const order = (period: string, possibleResend = false) =>
      consume(delivery("ClOrdID-1", { period, possibleResend }), { onDuplicate: "reject", rememberMs: 2 * DAY_MS });
    expect((await order("20260102")).kind).toBe("done");
    expect((await order("20260102")).kind).toBe("rejected");
    expect((await order("20260102", true)).kind).toBe("duplicate");
    expect((await order("20260105", true)).kind).toBe("done");
    expect(await effects(url, "ClOrdID-1")).toHaveLength(2);
  });

  it("keeps the value of the first handler for those that are to replay it", async () => {
    const { once } = await consumer();
    const answer = () =>
      once.consume(delivery("valued"), async () => ({ at: new Date(), n: 7n }), { onDuplicate: "replay" });
    const first = await answer();
    const again = await answer();
    expect(first.kind).toBe("done");
    expect(again).toMatchObject({ ...first, kind: "replayed" });
  });

  it("ends with the purge, and purges nothing that is still to be remembered", async () => {
    const { once, consume } = await consumer();
    await consume(delivery("short"), { rememberMs: 300_000 });
    await consume(delivery("long"));
    await passTime(url, 400_000);
    const { store } = once.internals.context;
    while ((await store.purgeDeliveries(100)) > 0);
    expect((await consume(delivery("long"))).kind).toBe("duplicate");
    expect((await consume(delivery("short"))).kind).toBe("done");
  });
});

describe("a batch", () => {
  it("is one transaction: overlapping ones of two consumers run each delivery once", async () => {
    const consumers = [await consumer(), await consumer()];
    const ids = Array.from({ length: 40 }, (_, index) => `overlap-${index}`);
    const left = new Set(ids);
    while (left.size > 0) {
      const slices = consumers.flatMap(({ consumeBatch }) =>
        [0, 10, 20].map(async (start) => {
          const slice = ids.slice(start, start + 20);
          const results = await consumeBatch(slice);
          for (const [index, id] of slice.entries()) if (results[index]?.kind !== "unsettled") left.delete(id);
        }),
      );
      await Promise.all(slices);
    }
    const seen = (await effects(url)).map(({ key }) => key).filter((key) => key.startsWith("overlap-"));
    expect(seen.sort()).toEqual(ids.sort());
  });

  it("leaves out what another process is taking in, and settles it on redelivery", async () => {
    const worker = await startInboxWorker(url);
    await worker.consumeUntil(delivery("left-out"), "accept:before");
    const { consumeBatch } = await consumer();
    expect(await consumeBatch(["taken-in", "left-out"])).toMatchObject([{ kind: "done" }, { why: "busy" }]);
    await worker.kill();
    await expect.poll(async () => (await consumeBatch(["left-out"]))[0]?.kind, { timeout: 20_000 }).toBe("done");
    expect(await effects(url, "left-out")).toHaveLength(1);
  });
});

describe("a numbered message", () => {
  it("has its effect once when copies of it race in two consumers; gaps and old epochs have none", async () => {
    const consumers = [await consumer(), await consumer()];
    const message = { producer: "racing" };
    for (const sequence of [0n, 1n, 2n]) {
      const copies = [0, 1, 2, 3].map((index) => consumers[index % 2]?.consumeNumbered({ ...message, sequence }));
      const kinds = (await Promise.all(copies)).map((result) => ({ kind: String(result?.kind) }));
      expect(tally(kinds)).toEqual({ done: 1, duplicate: 3 });
    }
    const [{ consumeNumbered }] = consumers as [Awaited<ReturnType<typeof consumer>>];
    expect(await consumeNumbered({ ...message, sequence: 5n })).toEqual({ kind: "out_of_order", expected: 3n });
    expect((await consumeNumbered({ ...message, epoch: 1n })).kind).toBe("done");
    expect(await consumeNumbered({ ...message, sequence: 3n })).toEqual({ kind: "fenced", epoch: 1n });
    expect((await effects(url, "racing")).map(({ amount }) => amount)).toEqual([0, 1, 2, 0]);
  });

  it("does not move its producer's number when the handler throws", async () => {
    const { consumeNumbered } = await consumer();
    const boom = () => Promise.reject(new Error("boom"));
    await expect(consumeNumbered({ producer: "thrown" }, boom)).rejects.toThrow("boom");
    expect(await consumeNumbered({ producer: "thrown", sequence: 1n })).toEqual({ kind: "out_of_order", expected: 0n });
    expect((await consumeNumbered({ producer: "thrown" })).kind).toBe("done");
    expect(await effects(url, "thrown")).toHaveLength(1);
  });
});

it("ifNewer: of state updates that arrive in any order, in two consumers, the newest one stays", async () => {
  const consumers = [await consumer(), await consumer()];
  await testPool(url).query("CREATE TABLE state (subject text PRIMARY KEY, version int NOT NULL)");
  const versions = [3, 9, 1, 7, 5, 2, 8, 4, 6];
  const updates = versions.map((version, index) =>
    consumers[index % 2]?.once.consume(delivery(`update-${version}`), ({ tx, ifNewer }) =>
      ifNewer("sub_1", version, async () => {
        await tx.query(
          "INSERT INTO state VALUES ('sub_1', $1) ON CONFLICT (subject) DO UPDATE SET version = excluded.version",
          [version],
        );
      }),
    ),
  );
  expect(tally((await Promise.all(updates)) as { kind: string }[])).toEqual({ done: versions.length });
  const { rows } = await testPool(url).query("SELECT version FROM state");
  expect(rows).toEqual([{ version: 9 }]);
});

describe("a handler that breaks its transaction", () => {
  it("by ending it itself: an error, and the delivery is not remembered", async () => {
    const { once, consume } = await consumer();
    const ended = once.consume(delivery("ended"), ({ tx }) => tx.query("COMMIT"));
    await expect(ended).rejects.toMatchObject({ code: "oncekey_transaction_lost" });
    expect((await consume(delivery("ended"))).kind).toBe("done");
  });

  it("by swallowing an SQL error: an error, and nothing is kept", async () => {
    const { once, consume } = await consumer();
    const swallowed = once.consume(delivery("swallowed"), async ({ tx }) => {
      await insertEffect(tx, "swallowed");
      await tx.query("SELECT 1 / 0").catch(() => {});
    });
    await expect(swallowed).rejects.toMatchObject({ code: "oncekey_transaction_aborted" });
    expect((await consume(delivery("swallowed"))).kind).toBe("done");
    expect(await effects(url, "swallowed")).toHaveLength(1);
  });
});

describe.each(["repeatable read", "serializable"] as const)("at %s", (isolation) => {
  it("50 deliveries of one event in two consumers have one effect; so has each of a batch", async () => {
    const strict = await ordersDatabase({ isolation });
    const consumers = [await consumer(testPool(strict)), await consumer(testPool(strict))];
    const raced = Array.from({ length: 50 }, (_, index) => consumers[index % 2]?.consume(delivery("raced")));
    const kinds = (await Promise.all(raced)).map((result) => ({ kind: String(result?.kind) }));
    expect(tally(kinds)).toEqual({ done: 1, duplicate: 49 });
    const batches = consumers.map(({ consumeBatch }) => consumeBatch(["raced", "b1", "b2"]));
    for (const results of await Promise.all(batches)) expect(results[0]?.kind).toBe("duplicate");
    const keys = (await effects(strict)).map(({ key }) => key);
    expect(keys.sort()).toEqual(["b1", "b2", "raced"]);
  });
});
