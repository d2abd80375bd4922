import { created, createOncekey, OncekeyError, reject, stringifyJson } from "oncekey";
import { type MemoryTransaction, memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { gate } from "../support/gate.ts";

const scope = { tenant: "acme", client: null };
const body = { amount: 5 };

interface Setup {
  run?: (tx: MemoryTransaction, runs: number) => Promise<unknown>;
}

async function started(setup: Setup = {}) {
  const store = memoryStore();
  const once = createOncekey({ store, waitMs: 1_000, onError: () => {} });
  let runs = 0;
  const invoices = once.transaction({
    name: "invoices.create",
    version: 1,
    input: { body: z.strictObject({ amount: z.number() }) },
    async run({ tx, input, send }) {
      runs++;
      await tx.insert("invoice", { amount: input.body.amount });
      await send("invoice.created", { amount: input.body.amount });
      const returned = await setup.run?.(tx, runs);
      return (
        (returned as ReturnType<typeof created> | undefined) ??
        created("/invoices/1", { amount: input.body.amount, run: runs })
      );
    },
  });
  await once.start();
  const run = (key: string, input: unknown = body, more: object = {}) =>
    once.run(invoices, { scope, key, input: { body: input }, ...more });
  return { store, once, invoices, run, runs: () => runs };
}

const text = (result: { outcome?: { body: Uint8Array } }) => new TextDecoder().decode(result.outcome?.body);

describe("a transaction operation", () => {
  it("runs once and replays its first answer byte for byte", async () => {
    const { run, runs, store } = await started();
    const first = await run("k1");
    const second = await run("k1");
    expect(first.kind).toBe("completed");
    expect(second).toMatchObject({ kind: "replayed", outcome: { status: 201 } });
    expect(text(second as never)).toBe(stringifyJson({ amount: 5, run: 1 }));
    expect(runs()).toBe(1);
    expect(store.rows("invoice")).toHaveLength(1);
    expect(store.messages()).toHaveLength(1);
  });

  it("keeps identity and fingerprint of the request as it came, whatever the handler does to its input", async () => {
    const store = memoryStore();
    const once = createOncekey({ store });
    let runs = 0;
    const orders = once.transaction({
      name: "orders.create",
      version: 1,
      async run({ input, scope: given }) {
        runs++;
        Object.assign(input.body as object, { amount: 6, processed: true });
        Object.assign(given, { tenant: "globex" });
        return created("/orders/1", { runs });
      },
    });
    await once.start();
    const run = (amount: number) => once.run(orders, { scope: { ...scope }, key: "k1", input: { body: { amount } } });
    expect((await run(5)).kind).toBe("completed");
    expect((await run(5)).kind).toBe("replayed");
    expect((await run(6)).kind).toBe("mismatch");
    expect(runs).toBe(1);
  });

  it("gives 50 concurrent duplicates one execution and one answer", async () => {
    const { run, runs } = await started();
    const results = await Promise.all(Array.from({ length: 50 }, () => run("k1")));
    expect(runs()).toBe(1);
    expect(results.filter((result) => result.kind === "completed")).toHaveLength(1);
    expect(results.filter((result) => result.kind === "replayed")).toHaveLength(49);
  });

  it("refuses another payload under the key, while the first runs and afterwards", async () => {
    const entered = gate();
    const finish = gate();
    const { run, runs } = await started({
      run: async () => {
        entered.open();
        await finish.promise;
      },
    });
    const first = run("k1");
    await entered.promise;
    expect((await run("k1", { amount: 6 })).kind).toBe("mismatch");
    finish.open();
    expect((await first).kind).toBe("completed");
    expect((await run("k1", { amount: 6 })).kind).toBe("mismatch");
    expect((await run("k1")).kind).toBe("replayed");
    expect(runs()).toBe(1);
  });

  it("keeps nothing when the handler throws, and raises its error", async () => {
    const { run, store } = await started({
      run: async (_tx, runs) => {
        if (runs === 1) throw new Error("boom");
      },
    });
    await expect(run("k1")).rejects.toThrow("boom");
    expect(store.rows("invoice")).toHaveLength(0);
    expect(store.messages()).toHaveLength(0);
    expect((await run("k1")).kind).toBe("completed");
  });

  it("stores a rejection and rolls its business rows back, unless they are to be kept", async () => {
    const undone = await started({ run: async () => reject(422, { code: "limit_reached" }) });
    expect(await undone.run("k1")).toMatchObject({ kind: "completed", outcome: { status: 422 } });
    expect(undone.store.rows("invoice")).toHaveLength(0);
    expect(await undone.run("k1")).toMatchObject({ kind: "replayed", outcome: { status: 422 } });
    expect(undone.runs()).toBe(1);

    const kept = await started({ run: async () => reject(402, { code: "declined" }, { keepRows: true }) });
    expect(await kept.run("k1")).toMatchObject({ kind: "completed", outcome: { status: 402 } });
    expect(kept.store.rows("invoice")).toHaveLength(1);
  });

  it("refuses a response of 400 or more without reject, and stores nothing", async () => {
    const { run, store } = await started({ run: async () => ({ ...created("/x", {}), status: 404 }) });
    await expect(run("k1")).rejects.toMatchObject({ code: "oncekey_reject_required" });
    expect(store.rows("invoice")).toHaveLength(0);
  });

  it("lets an invalid request be corrected under the same key", async () => {
    const { run, runs } = await started();
    await expect(run("k1", { amount: "x" })).rejects.toBeInstanceOf(OncekeyError);
    expect(runs()).toBe(0);
    expect((await run("k1")).kind).toBe("completed");
  });

  it("answers busy when the wait is over and the first still runs", async () => {
    const finish = gate();
    const { run } = await started({ run: () => finish.promise });
    const first = run("k1");
    expect((await run("k1", body, { waitMs: 30 })).kind).toBe("busy");
    finish.open();
    expect((await first).kind).toBe("completed");
  });
});
