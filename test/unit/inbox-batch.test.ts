import { type BatchStep, type ConsumeOptions, createOncekey, type IncomingDelivery } from "oncekey";
import { type MemoryTransaction, memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import { gate } from "../support/gate.ts";

interface Usage extends IncomingDelivery {
  readonly units: number;
}

type Step = BatchStep<MemoryTransaction, Usage>;

const usage = (id: string, more: Partial<Usage> = {}): Usage => ({
  ...{ tenant: "acme", source: "usage", id, units: 1 },
  ...more,
});

async function started() {
  const store = memoryStore();
  const once = createOncekey({ store, waitMs: 1_000, onError: () => {} });
  await once.start();
  const batches: string[][] = [];
  const consume = (deliveries: readonly Usage[], options: ConsumeOptions = {}, then?: (step: Step) => unknown) =>
    once.consumeBatch(
      deliveries,
      async (step) => {
        batches.push(step.fresh.map(({ id }) => id));
        for (const { id, units } of step.fresh) await step.tx.insert("ledger", { id, units });
        await then?.(step);
      },
      options,
    );
  return { once, store, consume, batches, kinds: (results: readonly { kind: string }[]) => results.map((r) => r.kind) };
}

describe("a batch", () => {
  it("runs once for all that is new, in its order", async () => {
    const { consume, batches, kinds, store } = await started();
    expect(kinds(await consume([usage("a"), usage("b")]))).toEqual(["done", "done"]);
    expect(kinds(await consume([usage("c"), usage("b"), usage("d")]))).toEqual(["done", "duplicate", "done"]);
    expect(batches).toEqual([
      ["a", "b"],
      ["c", "d"],
    ]);
    expect(store.rows("ledger")).toHaveLength(4);
  });

  it("does not call its handler for duplicates alone, nor for nothing", async () => {
    const { consume, batches } = await started();
    await consume([usage("a")]);
    expect(await consume([usage("a")])).toEqual([{ kind: "duplicate", receivedAt: expect.any(Date) }]);
    expect(await consume([])).toEqual([]);
    expect(batches).toHaveLength(1);
  });

  it("of more than a thousand is refused before anything is done: each delivery takes a lock of the database", async () => {
    const { consume, batches, kinds } = await started();
    const all = Array.from({ length: 1_001 }, (_, index) => usage(String(index)));
    await expect(consume(all)).rejects.toMatchObject({ code: "oncekey_delivery_invalid" });
    expect(batches).toEqual([]);
    expect(new Set(kinds(await consume(all.slice(1))))).toEqual(new Set(["done"]));
  });

  it("holds a delivery twice: its first one runs, the second is a duplicate of it", async () => {
    const { consume, batches } = await started();
    const results = await consume([usage("a"), usage("a", { units: 2 }), usage("b")]);
    expect(results).toEqual([
      { kind: "done", value: undefined },
      { kind: "duplicate", receivedAt: expect.any(Date) },
      { kind: "done", value: undefined },
    ]);
    expect(batches).toEqual([["a", "b"]]);
  });

  it("forgets all of itself when its handler throws", async () => {
    const { consume, kinds, store } = await started();
    const boom = () => Promise.reject(new Error("boom"));
    await expect(consume([usage("a"), usage("b")], {}, boom)).rejects.toThrow("boom");
    expect(store.rows("ledger")).toHaveLength(0);
    expect(kinds(await consume([usage("a"), usage("b")]))).toEqual(["done", "done"]);
  });

  it("leaves out what is being taken in elsewhere", async () => {
    const { once, consume, batches } = await started();
    const entered = gate();
    const finish = gate();
    const first = once.consume(usage("b"), async () => {
      entered.open();
      await finish.promise;
    });
    await entered.promise;
    const results = await consume([usage("a"), usage("b"), usage("c")]);
    expect(results).toMatchObject([{ kind: "done" }, { kind: "unsettled", why: "busy" }, { kind: "done" }]);
    expect(batches).toEqual([["a", "c"]]);
    finish.open();
    expect((await first).kind).toBe("done");
  });

  it("leaves out what another instance has locked, and looks again at what that has committed", async () => {
    const { consume, store, batches } = await started();
    const other = createOncekey({ store });
    await other.start();
    const entered = gate();
    const finish = gate();
    const elsewhere = other.consume(usage("b"), async () => {
      entered.open();
      await finish.promise;
    });
    await entered.promise;
    expect(await consume([usage("a"), usage("b")])).toMatchObject([{ kind: "done" }, { why: "busy" }]);
    finish.open();
    await elsewhere;
    expect(await consume([usage("a"), usage("b")])).toMatchObject([{ kind: "duplicate" }, { kind: "duplicate" }]);
    expect(batches).toEqual([["a"]]);
  });

  it("is tried again without the one that another transaction was faster with", async () => {
    const { store, batches, consume } = await started();
    const faster = createOncekey({ store: memoryStoreWithoutLocks(store) });
    await faster.start();
    let raced = false;
    const results = await consume([usage("a"), usage("b")], {}, async () => {
      if (raced) return;
      raced = true;
      expect((await faster.consume(usage("a"), async () => {})).kind).toBe("done");
    });
    expect(results).toMatchObject([{ kind: "duplicate" }, { kind: "done" }]);
    expect(batches).toEqual([["a", "b"], ["b"]]);
    expect(store.rows("ledger")).toEqual([{ id: "b", units: 1 }]);
  });

  it("runs each delivery once when overlapping batches race", async () => {
    const { consume, store } = await started();
    const ids = Array.from({ length: 20 }, (_, index) => `u${index}`);
    const slices = Array.from({ length: 10 }, (_, index) => ids.slice(index, index + 11).map((id) => usage(id)));
    for (let round = 0; round < 20; round++) {
      const results = await Promise.all(slices.map((slice) => consume(slice)));
      if (!results.flat().some(({ kind }) => kind === "unsettled")) break;
    }
    const seen = store.rows<{ id: string }>("ledger").map(({ id }) => id);
    expect(seen.sort()).toEqual(ids.sort());
  });

  it("rejects or replays its duplicates, if that is asked for", async () => {
    const { consume } = await started();
    const reject = { onDuplicate: "reject" } as const;
    expect(await consume([usage("a"), usage("a")], reject)).toMatchObject([{ kind: "done" }, { kind: "rejected" }]);
    const resent = usage("a", { possibleResend: true });
    expect(await consume([usage("a"), resent], reject)).toMatchObject([{ kind: "rejected" }, { kind: "duplicate" }]);
    const replay = { onDuplicate: "replay" } as const;
    await consume([usage("b")], replay);
    expect(await consume([usage("b")], replay)).toMatchObject([{ kind: "replayed", value: undefined }]);
  });

  it("is refused as a whole when one of its deliveries is malformed", async () => {
    const { consume, batches } = await started();
    const consumed = consume([usage("a"), usage("")]);
    await expect(consumed).rejects.toMatchObject({ code: "oncekey_delivery_invalid" });
    expect(batches).toEqual([]);
  });

  it("is left to redelivery when its handler takes too long", async () => {
    const { consume, store } = await started();
    const results = await consume([usage("a"), usage("b")], { maxDurationMs: 20 }, () => gate().promise);
    expect(results).toMatchObject([{ why: "time_out" }, { why: "time_out" }]);
    expect(store.rows("ledger")).toHaveLength(0);
  });
});

describe("the step of a batch", () => {
  it("guards each subject of each delivery against older states", async () => {
    const { consume } = await started();
    const ran: boolean[] = [];
    const deliveries = [usage("a", { units: 2 }), usage("b", { units: 1 }), usage("c", { units: 1, tenant: "globex" })];
    await consume(deliveries, {}, async ({ fresh, ifNewer }) => {
      for (const one of fresh) ran.push(await ifNewer(one, "meter", one.units, async () => {}));
    });
    expect(ran).toEqual([true, false, true]);
  });

  it("sends messages of each delivery's own tenant and correlation", async () => {
    const { consume, store } = await started();
    const deliveries = [usage("a", { correlation: "trace-a" }), usage("b", { tenant: "globex" })];
    await consume(deliveries, {}, async ({ fresh, of }) => {
      for (const one of fresh) for (const n of [1, 2]) await of(one).send("usage.seen", { n });
    });
    expect(store.messages()).toMatchObject([
      { tenant: "acme", correlation: "trace-a", entryId: null },
      { tenant: "acme", correlation: "trace-a" },
      { tenant: "globex", correlation: null },
      { tenant: "globex", correlation: null },
    ]);
    expect(new Set(store.messages().map(({ id }) => id)).size).toBe(4);
  });

  it("sends for the whole batch only where that is of one tenant", async () => {
    const { consume, store } = await started();
    const send = ({ send }: Step) => send("usage.batch", {});
    await consume([usage("a", { correlation: "t" }), usage("b", { correlation: "t" })], {}, send);
    expect(store.messages()).toMatchObject([{ tenant: "acme", correlation: "t" }]);
    const mixed = consume([usage("c"), usage("d", { tenant: "globex" })], {}, send);
    await expect(mixed).rejects.toMatchObject({ code: "oncekey_delivery_invalid" });
    expect(store.messages()).toHaveLength(1);
  });

  it("knows its own fresh deliveries only", async () => {
    const { consume } = await started();
    const foreign = consume([usage("a")], {}, ({ of }) => of(usage("a")));
    await expect(foreign).rejects.toMatchObject({ code: "oncekey_delivery_invalid" });
  });
});

/** The same store for somebody who does not respect the locks: a collision of two 64-bit keys, or other code. */
function memoryStoreWithoutLocks(store: ReturnType<typeof memoryStore>): ReturnType<typeof memoryStore> {
  const reckless: ReturnType<typeof memoryStore> = Object.create(store);
  reckless.transaction = (body) =>
    store.transaction((session) => {
      const own: typeof session = Object.create(session);
      own.tryLocks = async (digests) => digests.map(() => true);
      return body(own);
    });
  return reckless;
}
