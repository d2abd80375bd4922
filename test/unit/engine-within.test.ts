import { createOncekey, ok, reject } from "oncekey";
import { fromTransaction, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";

const scope = { tenant: "acme", client: null };

async function started() {
  const store = memoryStore();
  const once = createOncekey({ store, waitMs: 60_000, onError: () => {} });
  let answer: () => Promise<unknown> = async () => ok({});
  let runs = 0;
  const bookings = once.transaction({
    name: "bookings.create",
    version: 1,
    async run({ tx, send }) {
      runs += 1;
      await tx.insert("booking", { runs });
      await send("booked", { runs });
      return (await answer()) as ReturnType<typeof ok>;
    },
  });
  await once.start();
  const answerWith = (next: typeof answer) => {
    answer = next;
  };
  const run = (key: string, more: object = {}) => once.run(bookings, { scope, key, ...more });
  const runIn = (tx: MemoryTransaction, key: string) => run(key, { transaction: fromTransaction(tx) });
  const open = <R>(body: (tx: MemoryTransaction) => Promise<R>) => store.transaction(({ tx }) => body(tx));
  return { store, once, run, runIn, open, answerWith, runs: () => runs };
}

describe("a run in a transaction that the caller opened, on the memory store", () => {
  it("is nobody else's before the commit: duplicates of this process wait, and replay then", async () => {
    const { store, run, runIn, open, runs } = await started();
    let waiting: Promise<{ kind: string }> | undefined;
    const first = await open(async (tx) => {
      const result = await runIn(tx, "k");
      expect(await run("k", { waitMs: 0 })).toMatchObject({ kind: "busy" });
      waiting = run("k");
      return result;
    });
    expect(first.kind).toBe("completed");
    expect(await waiting).toEqual({ ...first, kind: "replayed" });
    expect([runs(), store.rows("booking").length, store.messages().length]).toEqual([1, 1, 1]);
  });

  it("a duplicate that waited runs itself where the caller rolled back", async () => {
    const { store, run, runIn, open, runs } = await started();
    let waiting: Promise<{ kind: string }> | undefined;
    const rolledBack = open(async (tx) => {
      await runIn(tx, "k");
      waiting = run("k");
      await run("k", { waitMs: 0 });
      throw new Error("of the caller");
    });
    await expect(rolledBack).rejects.toThrow("of the caller");
    expect((await waiting)?.kind).toBe("completed");
    expect([runs(), store.rows("booking").length]).toEqual([2, 1]);
  });

  it("a throw and a rejection undo its rows; the locks of a throw are free at once", async () => {
    const { store, run, runIn, open, answerWith } = await started();
    answerWith(() => Promise.reject(new Error("of the operation")));
    await open(async (tx) => {
      await tx.rows("booking");
      await expect(runIn(tx, "throws")).rejects.toThrow("of the operation");
      answerWith(async () => ok({}));
      expect((await run("throws")).kind).toBe("completed");
    });
    answerWith(async () => reject(422, { code: "limit_reached" }));
    expect(await open((tx) => runIn(tx, "refuses"))).toMatchObject({ kind: "completed", outcome: { status: 422 } });
    expect(await run("refuses")).toMatchObject({ kind: "replayed", outcome: { status: 422 } });
    expect([store.rows("booking").length, store.messages().length]).toEqual([1, 1]);
  });

  it("is waited for by close(), and refused after it", async () => {
    const { once, runIn, open, answerWith } = await started();
    let closing: Promise<unknown> | undefined;
    answerWith(async () => {
      closing = once.close({ graceMs: 60_000 });
      return ok({});
    });
    expect((await open((tx) => runIn(tx, "k"))).kind).toBe("completed");
    expect(await closing).toEqual({ drained: true });
    await expect(open((tx) => runIn(tx, "later"))).rejects.toMatchObject({ code: "oncekey_closed" });
  });
});
