import { createOncekey, ok, StoreFailure } from "oncekey";
import { memoryStore } from "oncekey/memory";
import {
  expectOnce,
  type FaultyStorePlan,
  fakeClock,
  faultyProvider,
  faultyStore,
  type PlannedFault,
} from "oncekey/testing";
import { describe, expect, it } from "vitest";

const kindOf = (error: unknown) => (error instanceof StoreFailure ? error.kind : error);
const failureOf = (use: Promise<unknown>) => use.then(() => null, kindOf);
const insert = (store: ReturnType<typeof memoryStore>) =>
  store.transaction(async ({ tx }) => void (await tx.insert("orders", {})));

describe("faultyStore", () => {
  it("lets the planned use of a method fail, and no other", async () => {
    const script: PlannedFault[] = [
      { method: "read", fault: "unavailable", nth: 2 },
      { method: "read", fault: "contention" },
      { method: "takeDue", fault: "answer_lost" },
    ];
    const { store, happened, pending } = faultyStore(memoryStore(), { script });
    const id = new Uint8Array(32);
    // The line without a number takes the first use that is free.
    expect(await failureOf(store.read(id))).toBe("contention");
    expect(await failureOf(store.read(id))).toBe("unavailable");
    expect(await failureOf(store.read(id))).toBe(null);
    expect(happened).toEqual([
      { method: "read", fault: "contention", nth: 1 },
      { method: "read", fault: "unavailable", nth: 2 },
    ]);
    expect(pending).toEqual([{ method: "takeDue", fault: "answer_lost" }]);
  });

  it.each([
    ["unavailable", "unavailable", 0],
    ["contention", "contention", 0],
    ["commit_unknown", "commit_unknown", 1],
    ["commit_unknown_undone", "commit_unknown", 0],
    ["answer_lost", "commit_unknown", 1],
    ["slow", null, 1],
  ] as const)("a transaction that is %s raises %s and leaves %i rows", async (fault, kind, rows) => {
    const waits: number[] = [];
    const plan: FaultyStorePlan = {
      script: [{ method: "transaction", fault }],
      slowMs: 70,
      wait: async (ms) => void waits.push(ms),
    };
    const memory = memoryStore();
    expect(await failureOf(insert(faultyStore(memory, plan).store))).toBe(kind);
    expect(memory.rows("orders")).toHaveLength(rows);
    expect(waits).toEqual(fault === "slow" ? [70] : []);
  });

  it("rolls a transaction back whose connection broke, also where the failure was swallowed", async () => {
    const memory = memoryStore();
    const { store } = faultyStore(memory, { script: [{ method: "session.read", fault: "answer_lost" }] });
    const swallowing = store.transaction(async (session) => {
      await session.tx.insert("orders", {});
      await session.read(new Uint8Array(32)).catch(() => {});
    });
    expect(await failureOf(swallowing)).toBe("unavailable");
    expect(memory.rows("orders")).toEqual([]);
  });

  it("stops when it is told to", async () => {
    const { store, happened, calm } = faultyStore(memoryStore(), { seed: 1, percent: 100 });
    expect(await failureOf(store.read(new Uint8Array(32)))).not.toBe(null);
    calm();
    for (let use = 0; use < 20; use += 1) await store.read(new Uint8Array(32));
    expect(happened).toHaveLength(1);
  });

  it("refuses a plan that cannot happen", () => {
    const planned = (line: object) => () => faultyStore(memoryStore(), { script: [line as PlannedFault] });
    expect(planned({ method: "raed", fault: "slow" })).toThrow('faultyStore knows no method "raed".');
    expect(planned({ method: "claim", fault: "commit_unknown" })).toThrow("claim cannot fail as commit_unknown");
  });

  it("gives the same faults for the same seed, others for another", async () => {
    const faultsOf = async (seed: number) => {
      const { store, happened } = faultyStore(memoryStore(), { seed, percent: 30 });
      for (let use = 0; use < 60; use += 1) await failureOf(insert(store));
      return JSON.stringify(happened);
    };
    expect(await faultsOf(7)).toBe(await faultsOf(7));
    expect(await faultsOf(7)).not.toBe(await faultsOf(8));
  });
});

describe("an operation over a faulty store", () => {
  const KINDS = ["transaction", "phases"] as const;

  async function world(kind: (typeof KINDS)[number], seed: number) {
    const time = fakeClock();
    const memory = memoryStore({ clock: time.now });
    const faulty = faultyStore(memory, { seed, percent: 25, wait: async () => {} });
    const psp = faultyProvider({ now: time.now });
    const once = createOncekey({ store: faulty.store, clock: time.clock, leaseMs: 1_000, onError: () => {} });
    const operation =
      kind === "transaction"
        ? once.transaction({
            name: "orders.create",
            version: 1,
            async run({ tx }) {
              await tx.insert("orders", {});
              return ok({ made: true });
            },
          })
        : once.phases({
            name: "orders.create",
            version: 1,
            maxAttempts: 1_000,
            async run(op) {
              await op.phase("order", ({ tx }) => tx.insert("orders", {}));
              await op.call("pay", {
                timeoutMs: 500,
                request: {},
                run: psp.call,
                recover: { find: psp.find, cancel: psp.cancel },
              });
              return op.complete(async () => ok({ made: true }));
            },
          });
    await once.start();
    const call = (key: string) =>
      once.run(operation, { scope: { tenant: "acme", client: null }, key, input: { body: {} }, waitMs: 0 });
    return { call, time, memory, faulty, psp };
  }

  it.each(KINDS)("has its effect once, whatever goes wrong (%s)", async (kind) => {
    let faults = 0;
    for (let seed = 1; seed <= 25; seed += 1) {
      const { call, time, memory, faulty, psp } = await world(kind, seed);
      const effects = () => memory.rows("orders").length;
      await expectOnce({ call, effects, time, faults: true });
      if (kind === "phases") expect(psp.effects).toHaveLength(effects());
      faults += faulty.happened.length;
    }
    expect(faults).toBeGreaterThan(100);
  });
});
