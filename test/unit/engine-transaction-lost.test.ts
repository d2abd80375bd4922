import { created, createOncekey, type OncekeyOptions, reject } from "oncekey";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { type FaultyMethod, fakeClock, faultyStore, type StoreFault } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { memoryBodies } from "../support/memory-bodies.ts";

type Plan = readonly { readonly method: FaultyMethod; readonly fault: StoreFault; readonly nth?: number }[];

interface Given {
  readonly plan?: Plan;
  readonly lookUp?: "skip";
  readonly options?: Partial<OncekeyOptions<MemoryTransaction>>;
  answer?(runs: number): ReturnType<typeof created> | ReturnType<typeof reject>;
}

/** Processes of one service over one store, each with a view of it in which things go wrong. */
function world() {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const state = { runs: 0 };
  const worker = async ({ plan = [], lookUp, options, answer }: Given = {}) => {
    const view = Object.create(store) as MemoryStore;
    const { store: faulty, pending } = faultyStore(view, { script: plan });
    const once = createOncekey({ store: faulty, clock: time.clock, waitMs: 0, onError: () => {}, ...options });
    const orders = once.transaction({
      name: "orders.create",
      version: 1,
      retentionMs: 700_000_000,
      ...(lookUp && { lookUp }),
      async run({ tx }) {
        const runs = ++state.runs;
        await tx.insert("order", { runs });
        return answer?.(runs) ?? created("/orders/1", { runs });
      },
    });
    await once.start();
    const run = (a = 1) =>
      time.advanceUntil(
        once.run(orders, { scope: { tenant: "acme", client: null }, key: "k", input: { body: { a } } }),
      );
    return { run, view, pending };
  };
  return { time, store, state, worker };
}

const LOST: Plan = [{ method: "transaction", fault: "commit_unknown", nth: 1 }];
const UNDONE: Plan = [{ method: "transaction", fault: "commit_unknown_undone", nth: 1 }];

describe("a transaction whose COMMIT was not answered", () => {
  it("has done its work where its row is there", async () => {
    const { worker, store } = world();
    const { run, pending } = await worker({ plan: LOST });
    expect(await run()).toMatchObject({ kind: "completed", outcome: { status: 201 } });
    expect(pending).toEqual([]);
    expect(await run()).toMatchObject({ kind: "replayed", outcome: { status: 201 } });
    expect(store.rows("order")).toHaveLength(1);
  });

  it("has stored its refusal where that is there", async () => {
    const { worker, store } = world();
    const { run, pending } = await worker({ plan: LOST, answer: () => reject(402, {}) });
    expect(await run()).toMatchObject({ kind: "completed", outcome: { status: 402 } });
    expect(pending).toEqual([]);
    expect(store.rows("order")).toEqual([]);
  });

  it("proves nothing where its row is not there: the COMMIT may still be on its way", async () => {
    const { worker, store, state } = world();
    const { run } = await worker({ plan: UNDONE });
    expect(await run()).toEqual({ kind: "commit_unknown", retryAfterMs: 1_000 });
    expect(state.runs).toBe(1);
    expect((await run()).kind).toBe("completed");
    expect(store.rows("order")).toHaveLength(1);
  });

  it("stays unknown where the store cannot be asked", async () => {
    const { worker } = world();
    const { run, pending } = await worker({ plan: [...LOST, { method: "read", fault: "unavailable", nth: 2 }] });
    expect((await run()).kind).toBe("commit_unknown");
    expect(pending).toEqual([]);
    expect((await run()).kind).toBe("replayed");
  });

  it("gives way to the outcome of another one that finished meanwhile", async () => {
    const { worker, store } = world();
    const other = await worker({ answer: () => created("/orders/other", {}) });
    const first = await worker({ plan: UNDONE });
    const { read } = store;
    let reads = 0;
    first.view.read = async (id) => {
      if (++reads === 2) expect((await other.run()).kind).toBe("completed");
      return read(id);
    };
    const headers = [
      ["location", "/orders/other"],
      ["content-type", "application/json"],
    ];
    const result = await first.run();
    expect(result).toMatchObject({ kind: "replayed" });
    expect((result as { outcome: { headers: unknown } }).outcome.headers).toEqual(expect.arrayContaining([headers[0]]));
    expect(store.rows("order")).toHaveLength(1);
  });

  it("is known to be done though its body is gone from the body store", async () => {
    const { worker, state } = world();
    const bodyStore = Object.assign(memoryBodies(), { get: async () => null });
    const options = { bodyStore, bodyThresholdBytes: 1_000 };
    const long = () => created("/orders/1", { long: "x".repeat(10_000) });
    const { run } = await worker({ plan: LOST, options, answer: long });
    expect(await run()).toEqual({ kind: "gone", state: "succeeded" });
    expect(state.runs).toBe(1);
  });
});

describe("a transaction that skips its look-up", () => {
  it("finds what is there under its lock, and runs nothing", async () => {
    const { worker, state } = world();
    const { run } = await worker({ lookUp: "skip" });
    expect((await run()).kind).toBe("completed");
    expect((await run()).kind).toBe("replayed");
    expect(await run(2)).toMatchObject({ kind: "mismatch", state: "succeeded" });
    expect(state.runs).toBe(1);
  });

  it("runs anew where what is there has expired", async () => {
    const { worker, state, time, store } = world();
    const { run } = await worker({ lookUp: "skip" });
    expect((await run()).kind).toBe("completed");
    await time.advance(700_000_000);
    expect((await run(2)).kind).toBe("completed");
    expect(state.runs).toBe(2);
    expect((await run()).kind).toBe("mismatch");
    expect(store.rows("order")).toHaveLength(2);
  });
});

describe("a transaction that meets others", () => {
  it.each([
    ["lets a duplicate that runs elsewhere go first", "busy", { kind: "busy", retryAfterMs: 1_000 }],
    ["believes in another payload only after the fourth look", "mismatch", { kind: "mismatch", state: "in_progress" }],
  ] as const)("%s", async (_, lock, result) => {
    const { worker, state, store } = world();
    const { run, view } = await worker();
    let locks = 0;
    const transaction = store.transaction.bind(store);
    view.transaction = (body) =>
      transaction((session) =>
        body(
          Object.assign(session, {
            lock: async () => {
              locks++;
              return lock;
            },
          }),
        ),
      );
    expect(await run()).toEqual(result);
    expect(locks).toBe(lock === "busy" ? 1 : 4);
    expect(state.runs).toBe(0);
  });

  it("looks again where somebody else finished first, and answers what they stored", async () => {
    const { worker, store } = world();
    const other = await worker({ answer: () => created("/orders/other", {}) });
    const { run, view } = await worker();
    const transaction = store.transaction.bind(store);
    let tries = 0;
    view.transaction = (async (body: never) => {
      if (++tries > 1) return transaction(body);
      // As if the locks had not kept the two apart: the index does.
      return transaction(async (session) => {
        const { insertFinished } = session;
        return (body as (given: typeof session) => Promise<unknown>)(
          Object.assign(session, {
            async insertFinished(...all: Parameters<typeof insertFinished>) {
              await transaction(async (inner) => inner.insertFinished(...all));
              return insertFinished(...all);
            },
          }),
        );
      });
    }) as typeof view.transaction;
    const result = await run();
    expect(result.kind).toBe("replayed");
    expect(tries).toBe(1);
    expect(store.rows("order")).toEqual([]);
    expect((await other.run()).kind).toBe("replayed");
  });

  it("runs again after contention, a few times", async () => {
    const { worker, state, store } = world();
    const contended = (times: number): Plan =>
      Array.from({ length: times }, (_, at) => ({ method: "transaction", fault: "contention", nth: at + 1 }));
    const { run } = await worker({ plan: contended(5) });
    expect(await run()).toEqual({ kind: "contention", retryAfterMs: 1_000 });
    expect(state.runs).toBe(5);
    expect(store.rows("order")).toEqual([]);
    const next = await worker({ plan: contended(4) });
    expect((await next.run()).kind).toBe("completed");
    expect(store.rows("order")).toHaveLength(1);
  });
});
