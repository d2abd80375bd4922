import {
  type ConsumeOptions,
  createOncekey,
  type DeliveryStep,
  type IncomingDelivery,
  type OncekeyOptions,
  StoreFailure,
  type StoreFailureKind,
} from "oncekey";
import { contentId } from "oncekey/inbox";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { gate } from "../support/gate.ts";

type Step = DeliveryStep<MemoryTransaction>;

const event: IncomingDelivery = { tenant: "acme", source: "payments", id: "evt_1" };
const DAY_MS = 86_400_000;

async function started(more: Partial<OncekeyOptions<MemoryTransaction>> = {}) {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const once = createOncekey({ store, waitMs: 1_000, onError: () => {}, ...more });
  await once.start();
  let runs = 0;
  const consume = (
    delivery: Partial<IncomingDelivery> = {},
    options: ConsumeOptions = {},
    then?: (step: Step) => unknown,
  ) =>
    once.consume(
      { ...event, ...delivery },
      async (step) => {
        runs++;
        await step.tx.insert("effect", { id: delivery.id ?? event.id });
        await then?.(step);
        return { run: runs };
      },
      options,
    );
  return { once, store, time, consume, runs: () => runs };
}

describe("a delivery", () => {
  it("has its effect once, and is acknowledged when it comes again", async () => {
    const { consume, store, time } = await started();
    expect(await consume()).toEqual({ kind: "done", value: { run: 1 } });
    const receivedAt = new Date(time.now());
    await time.advance(5_000);
    expect(await consume()).toEqual({ kind: "duplicate", receivedAt });
    expect(store.rows("effect")).toHaveLength(1);
  });

  it("is one by tenant, source, id and period; anything else is another one", async () => {
    const { consume, store } = await started();
    const others = [{}, { tenant: "globex" }, { source: "refunds" }, { id: "evt_2" }, { period: "2026-01-02" }];
    for (const other of others) expect((await consume(other)).kind).toBe("done");
    for (const other of others) expect((await consume(other)).kind).toBe("duplicate");
    expect(store.rows("effect")).toHaveLength(others.length);
  });

  it("runs once for 50 concurrent consumers; the others wait for its end", async () => {
    const { consume, store } = await started({ waitMs: 20_000 });
    const results = await Promise.all(Array.from({ length: 50 }, () => consume()));
    expect(results.filter(({ kind }) => kind === "done")).toHaveLength(1);
    expect(results.filter(({ kind }) => kind === "duplicate")).toHaveLength(49);
    expect(store.rows("effect")).toHaveLength(1);
  });

  it("is left to redelivery when the wait is over and the first still runs", async () => {
    const { consume } = await started();
    const entered = gate();
    const finish = gate();
    const first = consume({}, {}, () => {
      entered.open();
      return finish.promise;
    });
    await entered.promise;
    expect(await consume({}, { waitMs: 20 })).toEqual({ kind: "unsettled", why: "busy", retryAfterMs: 1_000 });
    finish.open();
    expect((await first).kind).toBe("done");
  });

  it("is forgotten when its handler throws, with all that the handler wrote", async () => {
    const { consume, store } = await started();
    const boom = () => Promise.reject(new Error("boom"));
    await expect(consume({}, {}, boom)).rejects.toThrow("boom");
    expect(store.rows("effect")).toHaveLength(0);
    expect(await consume()).toMatchObject({ kind: "done" });
  });

  it("is left to redelivery when its handler takes longer than it may; what that one still does is rolled back", async () => {
    const { consume, store } = await started();
    const aborted = gate();
    const hangs = ({ signal }: Step) => {
      signal.addEventListener("abort", aborted.open);
      return gate().promise;
    };
    const hanging = consume({}, { maxDurationMs: 30 }, hangs);
    await aborted.promise;
    expect(await hanging).toMatchObject({ kind: "unsettled", why: "time_out" });
    expect(store.rows("effect")).toHaveLength(0);
    expect((await consume()).kind).toBe("done");
  });

  it("is remembered for as long as it says, and is new afterwards (SQS FIFO: 5 minutes)", async () => {
    const { consume, store, time } = await started();
    const sqs = { rememberMs: 300_000 };
    const body = { id: contentId('{"amount":5}') };
    expect((await consume(body, sqs)).kind).toBe("done");
    await time.advance(299_999);
    expect((await consume(body, sqs)).kind).toBe("duplicate");
    await time.advance(2);
    expect((await consume(body, sqs)).kind).toBe("done");
    expect(store.rows("effect")).toHaveLength(2);
  });

  it("sends other messages when it is taken in anew, though the outbox may still hold the first ones", async () => {
    const { consume, store, time } = await started();
    const send = ({ send }: Step) => send("paid", { n: 1 });
    await consume({}, { rememberMs: 300_000 }, send);
    await time.advance(300_001);
    expect((await consume({}, { rememberMs: 300_000 }, send)).kind).toBe("done");
    expect(new Set(store.messages().map(({ id }) => id)).size).toBe(2);
  });
});

describe("what a duplicate gives", () => {
  it("replay: the value of the first one, as the codec keeps it", async () => {
    const { once } = await started();
    const handler = async () => ({ at: new Date(0), amount: 12n, left: undefined });
    const kept = { at: new Date(0), amount: 12n };
    const first = await once.consume(event, handler, { onDuplicate: "replay" });
    expect(first).toStrictEqual({ kind: "done", value: kept });
    const again = await once.consume(event, handler, { onDuplicate: "replay" });
    expect(again).toStrictEqual({ kind: "replayed", value: kept, receivedAt: expect.any(Date) });
    expect((await once.consume(event, handler)).kind).toBe("duplicate");
  });

  it("replay of a delivery whose value nobody kept: acknowledged", async () => {
    for (const onDuplicate of ["acknowledge", "reject"] as const) {
      const { consume } = await started();
      await consume({}, { onDuplicate });
      expect((await consume({}, { onDuplicate: "replay" })).kind).toBe("duplicate");
    }
  });

  it("replay of a value that cannot be kept: an error, and nothing is done", async () => {
    const { once, store } = await started();
    const handler = async ({ tx }: Step) => {
      await tx.insert("effect", { id: 1 });
      return () => 1;
    };
    const consumed = once.consume(event, handler, { onDuplicate: "replay" });
    await expect(consumed).rejects.toMatchObject({ code: "oncekey_value_unsupported" });
    expect(store.rows("effect")).toHaveLength(0);
    expect((await once.consume(event, handler)).kind).toBe("done");
  });

  it("reject (FIX ClOrdID): refused within the session day, unless it may be a resend; the next day is another one", async () => {
    const { consume, time, store } = await started();
    const order = (period: string, more: Partial<IncomingDelivery> = {}) =>
      consume({ id: "ClOrdID-1", period, ...more }, { onDuplicate: "reject", rememberMs: 2 * DAY_MS });
    expect((await order("20260101")).kind).toBe("done");
    const receivedAt = new Date(time.now());
    expect(await order("20260101")).toEqual({ kind: "rejected", receivedAt });
    expect(await order("20260101", { possibleResend: true })).toEqual({ kind: "duplicate", receivedAt });
    expect((await order("20260102")).kind).toBe("done");
    expect(store.rows("effect")).toHaveLength(2);
  });

  it("reject: a resend of what never arrived is taken in", async () => {
    const { consume } = await started();
    expect((await consume({ possibleResend: true }, { onDuplicate: "reject" })).kind).toBe("done");
  });
});

describe("ifNewer", () => {
  it("lets no older state replace a newer one, per subject, tenant and source", async () => {
    const { once, store } = await started();
    const seen = async (id: string, version: Date | bigint | number, more: Partial<IncomingDelivery> = {}) => {
      const result = await once.consume({ ...event, id, ...more }, ({ tx, ifNewer }) =>
        ifNewer("sub_1", version, () => tx.insert("state", { version })),
      );
      return result.kind === "done" && result.value;
    };
    const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second));
    expect(await seen("e1", at(1))).toBe(true);
    expect(await seen("e3", at(3))).toBe(true);
    expect(await seen("e2", at(2))).toBe(false);
    expect(await seen("e3 again", at(3))).toBe(false);
    expect(await seen("e4", BigInt(at(4).getTime()))).toBe(true);
    expect(await seen("e1", 1, { tenant: "globex" })).toBe(true);
    expect(await seen("e1", 1, { source: "refunds" })).toBe(true);
    expect(store.rows("state")).toHaveLength(5);
  });

  it("forgets the version when the handler throws", async () => {
    const { once } = await started();
    const update = (id: string, then: () => void) =>
      once.consume({ ...event, id }, async ({ ifNewer }) => {
        const ran = await ifNewer("sub_1", 7, async () => {});
        then();
        return ran;
      });
    const boom = () => {
      throw new Error("boom");
    };
    await expect(update("e1", boom)).rejects.toThrow("boom");
    expect(await update("e2", () => {})).toEqual({ kind: "done", value: true });
  });

  it("refuses versions that have no order", async () => {
    const { once } = await started();
    for (const version of [Number.NaN, 1.5, new Date("x"), 2n ** 63n, 2 ** 53]) {
      const consumed = once.consume(event, ({ ifNewer }) => ifNewer("sub_1", version, async () => {}));
      await expect(consumed).rejects.toMatchObject({ code: "oncekey_delivery_invalid" });
    }
    await expect(once.consume(event, ({ ifNewer }) => ifNewer("", 1, async () => {}))).rejects.toMatchObject({
      code: "oncekey_delivery_invalid",
    });
  });
});

describe("a store that fails", () => {
  /** The same store, where one statement of each transaction fails. */
  function failing(store: MemoryStore, kind: StoreFailureKind): { store: MemoryStore; calls: () => number } {
    let calls = 0;
    const own: MemoryStore = Object.create(store);
    own.transaction = (body) =>
      store.transaction((session) => {
        const wrapped: typeof session = Object.create(session);
        wrapped.accept = () => {
          calls++;
          return Promise.reject(new StoreFailure(kind, "planted"));
        };
        return body(wrapped);
      });
    return { store: own, calls: () => calls };
  }

  const cases: [StoreFailureKind, string, number][] = [
    ["unavailable", "store_unavailable", 1],
    ["timeout", "time_out", 1],
    ["contention", "contention", 5],
    ["conflict", "contention", 20],
    ["commit_unknown", "commit_unknown", 1],
  ];
  it.each(cases)(
    "(%s) leaves the delivery to redelivery: %s, after a bounded number of tries",
    async (kind, why, tries) => {
      const { store, calls } = failing(memoryStore(), kind);
      const { consume } = await started({ store });
      expect(await consume()).toMatchObject({ kind: "unsettled", why });
      expect(calls()).toBe(tries);
      expect(store.rows("effect")).toHaveLength(0);
    },
  );

  it("at the look-up, too", async () => {
    const store: MemoryStore = Object.create(memoryStore());
    store.deliveries = () => Promise.reject(new StoreFailure("unavailable", "planted"));
    const { consume, runs } = await started({ store });
    expect(await consume()).toMatchObject({ kind: "unsettled", why: "store_unavailable" });
    expect(runs()).toBe(0);
  });
});

describe("bad input", () => {
  const deliveries: [string, object][] = [
    ["no tenant", { tenant: undefined }],
    ["an empty source", { source: "" }],
    ["a number as id", { id: 7 }],
    ["an id of 513 characters", { id: "x".repeat(513) }],
    ["a tenant of 256 characters", { tenant: "x".repeat(256) }],
    ["NUL", { id: "a\0b" }],
    ["half a character", { source: "\ud800" }],
    ["an empty period", { period: "" }],
  ];
  it.each(deliveries)("is refused before anything is run: %s", async (_, delivery) => {
    const { consume, runs } = await started();
    await expect(consume(delivery as never)).rejects.toMatchObject({ code: "oncekey_delivery_invalid" });
    expect(runs()).toBe(0);
  });

  const options: [string, object][] = [
    ["rememberMs that is no number", { rememberMs: "1d" }],
    ["rememberMs of a fraction", { rememberMs: 300_000.5 }],
    ["rememberMs not longer than the handler may take", { rememberMs: 60_000 }],
    ["rememberMs without end", { rememberMs: Infinity }],
    ["maxDurationMs of 0", { maxDurationMs: 0 }],
    ["a negative wait", { waitMs: -1 }],
    ["an unknown onDuplicate", { onDuplicate: "ignore" }],
  ];
  it.each(options)("is refused: %s", async (_, option) => {
    const { consume, runs } = await started();
    await expect(consume({}, option as never)).rejects.toMatchObject({ code: "oncekey_delivery_invalid" });
    expect(runs()).toBe(0);
  });

  it("shows nothing of the delivery in the error", async () => {
    const { consume } = await started();
    const failed = consume({ id: `${"secret".repeat(100)}` }).catch((error: Error) => error.message);
    expect(await failed).not.toContain("secret");
  });

  it("is refused before start and after close", async () => {
    const once = createOncekey({ store: memoryStore() });
    await expect(once.consume(event, async () => 1)).rejects.toMatchObject({ code: "oncekey_not_started" });
    await once.start();
    await once.close();
    await expect(once.consume(event, async () => 1)).rejects.toMatchObject({ code: "oncekey_closed" });
  });
});
