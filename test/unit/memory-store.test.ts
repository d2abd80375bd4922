import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import type { NewEntry } from "../../src/core/entry.ts";

const bytes = (length: number, fill: number) => new Uint8Array(length).fill(fill);

function entryOf(fill: number): NewEntry {
  return {
    id: bytes(32, fill),
    tenant: "acme",
    client: null,
    operation: "test.create",
    key: `key-${fill}`,
    runKind: "phases",
    operationVersion: 1,
    fingerprint: bytes(35, 1),
    wireDigest: null,
    fence: bytes(16, fill),
    seed: bytes(16, fill),
    input: null,
    context: null,
  };
}

async function claimed(store: MemoryStore, fill: number): Promise<NewEntry> {
  const entry = entryOf(fill);
  expect(await store.claim(entry, 60_000)).not.toBeNull();
  return entry;
}

/** A point that something can wait at until it is opened. */
function gate(): { readonly passed: Promise<void>; open: () => void } {
  let open: () => void = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

describe("memoryStore", () => {
  it("counts time by the clock it is given", async () => {
    let now = 1_000;
    const store = memoryStore({ clock: () => now });
    const { id } = await claimed(store, 1);
    now += 59_999;
    expect((await store.read(id))?.clock).toMatchObject({ ageMs: 59_999, claimableInMs: 1 });
    now += 1;
    expect((await store.read(id))?.clock.claimableInMs).toBe(0);
    expect((await store.read(id))?.createdAt).toEqual(new Date(1_000));
  });

  it("tells by its traits whether a lease can be renewed beside its transactions", () => {
    expect(memoryStore().traits).toEqual({ connections: null, renews: true, abandons: true });
    expect(memoryStore({ connections: 2 }).traits).toEqual({ connections: 2, renews: true, abandons: true });
    expect(memoryStore({ connections: 1 }).traits).toEqual({ connections: 1, renews: false, abandons: true });
  });

  it("holds transactions to one fewer than its connections, in the order they came", async () => {
    const store = memoryStore({ connections: 2 });
    const first = gate();
    const events: string[] = [];
    const run = (name: string, until: Promise<void>) =>
      store.transaction(async () => {
        events.push(`${name} begins`);
        await until;
        events.push(`${name} ends`);
      });
    const running = ["a", "b", "c"].map((name) => run(name, first.passed));
    const entry = await claimed(store, 1);
    expect(await store.renew(entry.id, entry.fence, 60_000)).toBe(true);
    expect(events).toEqual(["a begins"]);
    first.open();
    await Promise.all(running);
    expect(events).toEqual(["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
  });

  it("lets the next transaction in after one that threw", async () => {
    const store = memoryStore({ connections: 1 });
    await expect(store.transaction(() => Promise.reject(new Error("business")))).rejects.toThrow("business");
    expect(await store.transaction(async () => "ran")).toBe("ran");
  });

  it("shows a transaction its own rows and those that others have committed", async () => {
    const store = memoryStore();
    const inserted = gate();
    const looked = gate();
    const writing = store.transaction(async ({ tx }) => {
      await tx.insert("invoice", { id: "inv_1" });
      inserted.open();
      await looked.passed;
      expect(await tx.rows("invoice")).toEqual([{ id: "inv_1" }]);
    });
    await inserted.passed;
    await store.transaction(async ({ tx }) => {
      expect(await tx.rows("invoice")).toEqual([]);
      looked.open();
      await writing;
      expect(await tx.rows("invoice")).toEqual([{ id: "inv_1" }]);
    });
  });

  it("keeps rows that nobody can change from outside", async () => {
    const store = memoryStore();
    const row = { id: "inv_1", tags: ["new"] };
    await store.transaction(async ({ tx }) => {
      const inserting = tx.insert("invoice", row);
      row.tags.push("changed");
      await inserting;
    });
    store.rows<typeof row>("invoice")[0]?.tags.push("changed");
    expect(store.rows("invoice")).toEqual([{ id: "inv_1", tags: ["new"] }]);
    expect(store.rows("other")).toEqual([]);
  });

  it("refuses the wait that would close a circle, and lets the other transaction go on", async () => {
    const store = memoryStore();
    const [left, right] = [await claimed(store, 1), await claimed(store, 2)];
    const bothHold = [gate(), gate()] as const;
    const take = async (mine: NewEntry, theirs: NewEntry, own: 0 | 1) =>
      store.transaction(async ({ tx }) => {
        expect(await store.owns(tx, mine.id, mine.fence)).toBe(true);
        bothHold[own].open();
        await Promise.all(bothHold.map((one) => one.passed));
        return store.owns(tx, theirs.id, theirs.fence);
      });
    const ended = await Promise.allSettled([take(left, right, 0), take(right, left, 1)]);
    expect(ended[0]).toEqual({ status: "fulfilled", value: true });
    expect(ended[1]).toMatchObject({ status: "rejected", reason: { name: "StoreFailure", kind: "contention" } });
    expect(await store.renew(left.id, left.fence, 60_000)).toBe(true);
    expect(await store.renew(right.id, right.fence, 60_000)).toBe(true);
  });

  it("frees an entry that a statement was still waiting for when its transaction was given up", async () => {
    const store = memoryStore();
    const { id, fence } = await claimed(store, 1);
    const [held, release] = [gate(), gate()];
    const owner = store.transaction(async ({ tx }) => {
      await store.owns(tx, id, fence);
      held.open();
      await release.passed;
    });
    await held.passed;
    const waits: Promise<boolean>[] = [];
    const abandoned = store.transaction(async ({ tx }) => {
      waits.push(store.owns(tx, id, fence));
      throw new Error("given up");
    });
    await expect(abandoned).rejects.toThrow("given up");
    release.open();
    await owner;
    await expect(waits[0]).rejects.toMatchObject({ kind: "transaction_lost" });
    expect(await store.renew(id, fence, 60_000)).toBe(true);
  });

  it("refuses a transaction that is over, and one of another store", async () => {
    const store = memoryStore();
    const { id, fence } = await claimed(store, 1);
    const kept: MemoryTransaction[] = [];
    await store.transaction(async ({ tx }) => {
      kept.push(tx);
      await expect(memoryStore().owns(tx, id, fence)).rejects.toMatchObject({ kind: "transaction_lost" });
    });
    const over = kept[0] as MemoryTransaction;
    await expect(over.insert("invoice", {})).rejects.toMatchObject({ kind: "transaction_lost" });
    await expect(over.rows("invoice")).rejects.toMatchObject({ kind: "transaction_lost" });
    await expect(store.owns(over, id, fence)).rejects.toMatchObject({ kind: "transaction_lost" });
    expect(store.rows("invoice")).toEqual([]);
  });

  it("shows the messages that were committed, exact digits kept", async () => {
    const store = memoryStore();
    const { id } = entryOf(1);
    const message = { topic: "t", key: null, orderBy: null, delayMs: 0, tenant: "acme", entryId: id };
    const payload = '{"amount":9007199254740993}';
    await store.transaction((session) => session.send({ ...message, id: "m1", payload }));
    expect(store.messages()).toEqual([{ ...message, id: "m1", payload }]);
    const again = store.transaction((session) => session.send({ ...message, id: "m1", payload }));
    await expect(again).rejects.toThrow("was sent already");
  });
});
