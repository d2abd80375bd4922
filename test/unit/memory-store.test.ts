import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import type { NewEntry } from "../../src/core/entry.ts";
import type { NewMessage } from "../../src/core/message.ts";
import type { ClaimedMessage } from "../../src/core/outbox.ts";

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
    correlation: null,
  };
}

async function claimed(store: MemoryStore, fill: number, overrides: Partial<NewEntry> = {}): Promise<NewEntry> {
  const entry = { ...entryOf(fill), ...overrides };
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

  it("shows the messages that were committed, exact digits kept, and what became of them", async () => {
    let now = 1_000;
    const store = memoryStore({ clock: () => now });
    const message = messageOf("m1");
    await store.transaction((session) => session.send(message));
    const sent = { ...message, seq: 1n, state: "pending", attempt: 0, fence: null, deliveredAt: null, reason: null };
    expect(store.messages()).toEqual([{ ...sent, createdAt: 1_000, availableAt: 1_000 }]);
    const again = store.transaction((session) => session.send(message));
    await expect(again).rejects.toThrow("was sent already");
    const [held] = await store.outbox.claim({ topics: ["t"], limit: 1, leaseMs: 500 });
    now = 1_200;
    await store.outbox.postpone(held as ClaimedMessage, 100, "503");
    expect(store.messages()).toMatchObject([{ state: "pending", attempt: 1, availableAt: 1_300, reason: "503" }]);
    now = 1_300;
    const [next] = await store.outbox.claim({ topics: ["t"], limit: 1, leaseMs: 500 });
    await store.outbox.delivered(next as ClaimedMessage);
    expect(store.messages()).toMatchObject([{ state: "delivered", attempt: 2, deliveredAt: 1_300, reason: null }]);
  });

  it("claims what became due first, by its clock", async () => {
    let now = 1_000;
    const store = memoryStore({ clock: () => now });
    await store.transaction((session) => session.send({ ...messageOf("late"), delayMs: 50 }));
    await store.transaction((session) => session.send(messageOf("early")));
    now += 50;
    const claimed = await store.outbox.claim({ topics: ["t"], limit: 2, leaseMs: 500 });
    expect(claimed.map(({ id, seq }) => [id, seq])).toEqual([
      ["early", "2"],
      ["late", "1"],
    ]);
  });

  it("refuses the wait of two senders for each other's orders", async () => {
    const store = memoryStore();
    const bothHold = [gate(), gate()] as const;
    const send = (name: string, orders: readonly [string, string], own: 0 | 1) =>
      store.transaction(async (session) => {
        await session.send({ ...messageOf(`${name}1`), orderBy: orders[0] });
        bothHold[own].open();
        await Promise.all(bothHold.map((one) => one.passed));
        await session.send({ ...messageOf(`${name}2`), orderBy: orders[1] });
      });
    const ended = await Promise.allSettled([send("a", ["x", "y"], 0), send("b", ["y", "x"], 1)]);
    expect(ended[0]?.status).toBe("fulfilled");
    expect(ended[1]).toMatchObject({ status: "rejected", reason: { kind: "contention" } });
    expect(store.messages().map(({ id }) => id)).toEqual(["a1", "a2"]);
  });

  it("shows the deliveries that it remembers, and when a target was last announced", async () => {
    let now = 1_000;
    const store = memoryStore({ clock: () => now });
    const delivery = { tenant: "acme", source: "s", id: "d1" };
    const accepted = { digest: bytes(32, 1), delivery, value: null, keepMs: 500 };
    await store.transaction((session) => session.accept([accepted]));
    expect(store.accepted()).toEqual([delivery]);
    const target = { operation: "test.create", runKind: "phases", operationVersion: 1 } as const;
    await store.announce([target]);
    now += 500;
    expect(store.accepted()).toEqual([]);
    await store.announce([target]);
    expect(store.announced()).toEqual([{ ...target, seenAt: 1_500 }]);
  });

  it("empties a tombstone of everything but identity and fingerprint", async () => {
    let now = 1_000;
    const store = memoryStore({ clock: () => now });
    const { id, fence } = await claimed(store, 1, { input: bytes(3, 1), context: bytes(3, 2) });
    await store.recordCall(id, fence, { position: 0, kind: "call", name: "authorize", value: bytes(1, 0) });
    const outcome = { status: 201, content: bytes(2, 9), pointer: null };
    await store.complete(id, fence, { state: "succeeded", outcome, retentionMs: 100, tombstoneMs: 1_000 });
    now += 100;
    expect(await store.purge(10)).toBe(1);
    const entry = await store.read(id);
    expect(entry).toMatchObject({ outcome: null, outcomeGone: true, input: null, context: null });
    expect((await store.journal(id)).records).toEqual([]);
    expect(entry?.clock.tombstoned).toBe(true);
  });

  it("takes the fences of sweepers and relays from the randomness it is given", async () => {
    let last = 0;
    const random = { bytes: (length: number) => bytes(length, ++last), unit: () => 0 };
    let now = 1_000;
    const store = memoryStore({ clock: () => now, random });
    await claimed(store, 100, { input: bytes(1, 1) });
    now += 60_000;
    const target = { operation: "test.create", runKind: "phases", operationVersion: 1 } as const;
    expect((await store.takeDue(target, 1, 60_000))[0]?.fence).toEqual(bytes(16, 1));
    await store.transaction((session) => session.send(messageOf("m1")));
    expect((await store.outbox.claim({ topics: ["*"], limit: 1, leaseMs: 1 }))[0]?.fence).toEqual(bytes(16, 2));
  });
});

function messageOf(id: string): NewMessage {
  return {
    ...{ id, topic: "t", payload: '{"amount":9007199254740993}', key: null, orderBy: null, delayMs: 0 },
    ...{ tenant: "acme", client: null, entryId: null, context: null, correlation: null },
  };
}
