import { createOncekey, ok } from "oncekey";
import { type MemoryStore, memoryStore } from "oncekey/memory";
import { type Crash, crashingAt, crashPoints, expectOnce, fakeClock, forEachCrashPoint } from "oncekey/testing";
import { describe, expect, it } from "vitest";

const scope = { tenant: "acme", client: null };

/** One process of a service that makes orders: on a store that outlives it. */
async function orders(store: MemoryStore, crash: Crash | null) {
  const onPoint = crash?.onPoint;
  const once = createOncekey({ store: crash?.store(store) ?? store, ...(onPoint === undefined ? {} : { onPoint }) });
  const operation = once.transaction({
    name: "orders.create",
    version: 1,
    async run({ tx }) {
      await tx.insert("orders", {});
      await onPoint?.("order:inserted");
      return ok({ made: true });
    },
  });
  await once.start();
  return (key: string) => once.run(operation, { scope, key, input: { body: {} }, waitMs: 0 });
}

describe("crashingAt", () => {
  it("ends a process without an error: nothing of it returns, and nothing is written by its catch and finally", async () => {
    const store = memoryStore();
    const crash = crashingAt("here");
    const dying = crash.store(store);
    const after: string[] = [];
    const working = async () => {
      try {
        await dying.transaction(async ({ tx }) => {
          await tx.insert("orders", { half: true });
          await crash.onPoint("here");
          after.push("the transaction");
        });
        after.push("the transaction's end");
      } catch {
        after.push("catch");
      } finally {
        after.push("finally");
        await dying.transaction(({ tx }) => tx.insert("orders", { late: true }));
      }
    };
    expect(crash.isDead).toBe(false);
    await crash.during(working);
    await crash.died;
    expect(crash.isDead).toBe(true);
    const late = Promise.race([dying.clockMs(), dying.outbox.claim({ topics: ["*"], limit: 1, leaseMs: 1 })]);
    await store.transaction(({ tx }) => tx.insert("orders", { whole: true }));
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(await Promise.race([late, Promise.resolve("nothing")])).toBe("nothing");
    expect(after).toEqual([]);
    expect(store.rows("orders")).toEqual([{ whole: true }]);
  });

  it("ends code outside of the store in the same way, and lets it reach the store no more", async () => {
    const store = memoryStore();
    const crash = crashingAt("here");
    const dying = crash.store(store);
    const after: string[] = [];
    const working = async () => {
      try {
        await crash.onPoint("here");
      } finally {
        after.push("finally");
      }
    };
    await crash.during(working);
    const late = dying.announce([{ operation: "orders", runKind: "phases", operationVersion: 1 }]);
    void late.finally(() => after.push("announced"));
    void crash.onPoint("there").finally(() => after.push("there"));
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(after).toEqual([]);
    expect(store.announced()).toEqual([]);
  });

  it("rolls back what was open and frees its locks, so that the next process can begin at once", async () => {
    const store = memoryStore();
    const crash = crashingAt("order:inserted");
    const dying = await orders(store, crash);
    await crash.during(() => dying("k"));
    const next = await orders(store, null);
    expect(await next("k")).toMatchObject({ kind: "completed" });
    expect(store.rows("orders")).toHaveLength(1);
  });

  it("does not hear of a statement that was on its way, which is carried out all the same", async () => {
    const store = memoryStore();
    const crash = crashingAt("now");
    let heard = false;
    const announcing = crash.store(store).announce([{ operation: "orders", runKind: "phases", operationVersion: 1 }]);
    void announcing.then(() => {
      heard = true;
    });
    await crash.during(() => crash.onPoint("now"));
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(store.announced()).toHaveLength(1);
    expect(heard).toBe(false);
  });

  it("counts passes where the point is passed several times", async () => {
    const store = memoryStore();
    const crash = crashingAt("order:inserted", 2);
    const dying = await orders(store, crash);
    await dying("first");
    await crash.during(() => dying("second"));
    expect(store.rows("orders")).toHaveLength(1);
  });

  it("raises where the process never comes to its point, and names those that it passed", async () => {
    const crash = crashingAt("insert_finshed:before");
    const living = await orders(memoryStore(), crash);
    await expect(crash.during(() => living("k"))).rejects.toThrow(
      /never came to the crash point "insert_finshed:before", so nothing was tested\.\nPoints passed: read:before, read:after, lock:before, .*transaction:committed\./,
    );
  });

  it("raises an error of the action before the point as it is", async () => {
    const failure = new RangeError("before");
    await expect(crashingAt("x").during(() => Promise.reject(failure))).rejects.toBe(failure);
  });
});

describe("forEachCrashPoint", () => {
  it("runs once for each point of a shape, in order, and for points of one's own", async () => {
    const points: string[] = [];
    const dieAt = async (crash: Crash) => {
      points.push(crash.point);
      await crash.during(() => crash.onPoint(crash.point));
    };
    await forEachCrashPoint({ runKind: "capture" }, dieAt);
    await forEachCrashPoint(["mine"], dieAt);
    expect(points).toEqual([...crashPoints({ runKind: "capture" }), "mine"]);
  });

  it("says at which point a test failed, and why", async () => {
    const failing = forEachCrashPoint(["a", "b"], async (crash) => {
      await crash.during(() => crash.onPoint(crash.point));
      expect(crash.point).toBe("a");
    });
    await expect(failing).rejects.toThrow(/^Crash point "b": expected 'b' to be 'a'/);
  });

  it("does not take a run for a test in which nothing died, nor an empty list", async () => {
    await expect(forEachCrashPoint(["a"], async () => {})).rejects.toThrow('never came to the crash point "a"');
    await expect(forEachCrashPoint([], async () => {})).rejects.toThrow("There is no crash point to try.");
  });
});

describe("a handler without Oncekey", () => {
  /** Orders and keys in "tables" that outlive the process; each write is a commit of its own, or both are one. */
  const handWritten = (isAtomic: boolean) => {
    const tables = { orders: 0, keys: new Map<string, number>() };
    const handler = (onPoint: (point: string) => Promise<void>) => async (key: string) => {
      const known = tables.keys.get(key);
      if (known !== undefined) return known;
      await onPoint("begin");
      tables.orders += 1;
      if (isAtomic) tables.keys.set(key, tables.orders);
      await onPoint("order:committed");
      if (!isAtomic) tables.keys.set(key, tables.orders);
      await onPoint("key:committed");
      return tables.orders;
    };
    return { tables, handler };
  };
  const crashTest = (isAtomic: boolean) =>
    forEachCrashPoint(["begin", "order:committed", "key:committed"], async (crash) => {
      const { tables, handler } = handWritten(isAtomic);
      await expectOnce({
        call: handler(async () => {}),
        dies: { call: handler(crash.onPoint), at: crash },
        concurrent: 1,
        effects: () => tables.orders,
      });
    });

  it("is found out where it commits effect and key apart", async () => {
    await expect(crashTest(false)).rejects.toThrow(
      /^Crash point "order:committed": The call: 2 effects instead of 1 \(the process died, another one got the retry\)\.\n\nSeen under one key:\n {2}1 × sent, the process died: no answer\n[\s\S]*Commit the effect and its record in one transaction/,
    );
  });

  it("passes where it commits them together", async () => {
    await crashTest(true);
  });
});

describe("expectOnce with a process that dies", () => {
  it("says so where the process neither dies nor ends", async () => {
    const time = fakeClock();
    const crash = crashingAt("never");
    const call = () => new Promise<never>(() => {});
    const run = expectOnce({ call, dies: { call, at: crash }, effects: () => 0, time, patienceMs: 50 });
    await expect(run).rejects.toThrow('neither came to the crash point "never" nor ended within 50 ms');
  });
});
