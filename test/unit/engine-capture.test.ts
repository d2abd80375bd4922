import {
  createOncekey,
  currentOrigin,
  happened,
  notDone,
  type OncekeyOptions,
  type Outcome,
  ok,
  type Reconcile,
  StoreFailure,
} from "oncekey";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { createSweeper } from "oncekey/sweeper";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it, vi } from "vitest";
import { runCaptured } from "../support/captured.ts";
import { gate } from "../support/gate.ts";

const LEASE_MS = 1_000;
const MAX_MS = 4_000;

interface Options {
  readonly reconcile?: Reconcile;
  readonly afterCrash?: "needsRecovery" | "runAgain";
  readonly onStoreDown?: "refuse" | "run";
  readonly once?: Partial<OncekeyOptions<MemoryTransaction>>;
}

const answer = (status: number, headers: Outcome["headers"] = []): Outcome => ({
  status,
  headers,
  body: new Uint8Array([1, 0, 255]),
});

/** Captured handlers are run by bindings; this one calls the engine as a binding does. */
async function refunds(options: Options = {}) {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const worker = async () => {
    const own = Object.create(store) as MemoryStore;
    const once = createOncekey({
      store: own,
      clock: time.clock,
      leaseMs: LEASE_MS,
      onError: () => {},
      ...options.once,
    });
    const { once: _, ...definition } = options;
    const operation = once.capture({ name: "refunds.create", version: 1, maxDurationMs: MAX_MS, ...definition });
    await once.start();
    const run = (key: string, handler: () => Promise<Outcome>, payload = "a", waitMs = 0) => {
      return runCaptured(operation, { key, handler, payload, waitMs });
    };
    return { once, store: own, run, sweeper: createSweeper(once) };
  };
  return { time, store, worker };
}

describe("a captured handler", () => {
  it("runs once; its answer is replayed without the headers that belong to one caller", async () => {
    const { worker } = await refunds();
    const { run } = await worker();
    const handler = vi.fn(async () =>
      answer(201, [
        ["location", "/r/1"],
        ["set-cookie", "s=1"],
      ]),
    );
    expect(await run("k", handler)).toMatchObject({ kind: "completed" });
    const replay = await run("k", handler);
    expect(replay).toEqual({ kind: "replayed", outcome: { ...answer(201), headers: [["location", "/r/1"]] } });
    expect(handler).toHaveBeenCalledTimes(1);
  });

  it("knows who asked and under which key, as reconcile will", async () => {
    const asked = vi.fn(async () => notDone());
    const { worker, time } = await refunds({ reconcile: asked });
    const { run } = await worker();
    let origin: unknown;
    await run("k", async () => {
      await new Promise(setImmediate);
      origin = currentOrigin();
      return answer(500);
    });
    await time.advance(MAX_MS + 2 * LEASE_MS);
    await time.advanceUntil(run("k", async () => answer(201)));
    expect(origin).toMatchObject({ key: "k", scope: { tenant: "acme", client: null } });
    expect(asked).toHaveBeenCalledWith(expect.objectContaining(origin as object));
    expect(() => currentOrigin()).toThrow(/outside a captured handler/);
  });

  it("stores a 4xx as final, and frees the key where nothing began", async () => {
    const { worker } = await refunds();
    const { run } = await worker();
    expect((await run("k1", async () => answer(404))).kind).toBe("completed");
    expect(await run("k1", async () => answer(201))).toMatchObject({ kind: "replayed", outcome: { status: 404 } });
    for (const status of [401, 403, 408, 425, 429]) {
      expect((await run("k2", async () => answer(status))).kind).toBe("not_begun");
    }
    expect((await run("k2", async () => answer(503, [["Retry-After", "1"]]))).kind).toBe("not_begun");
    expect((await run("k2", async () => answer(201))).kind).toBe("completed");
  });

  it("takes a 5xx and a throw for unknown, never for failed (V13)", async () => {
    const { worker } = await refunds();
    const { run } = await worker();
    expect((await run("k1", async () => answer(500))).kind).toBe("provisional");
    expect(await run("k1", async () => answer(201))).toMatchObject({ kind: "unknown", provisional: { status: 500 } });
    const boom = async () => Promise.reject(new Error("boom"));
    await expect(run("k2", boom)).rejects.toThrow("boom");
    expect((await run("k2", async () => answer(201))).kind).toBe("unknown");
  });

  it("needs recovery after its process died, and never runs a second time (Q2)", async () => {
    const { worker, time } = await refunds();
    const dying = await worker();
    dying.store.renew = () => Promise.reject(new Error("dead"));
    dying.store.markUnknown = () => Promise.reject(new StoreFailure("unavailable", "dead"));
    void dying.run("k", () => new Promise(() => {}));
    await time.advance(LEASE_MS + 10);
    const b = await worker();
    const handler = vi.fn(async () => answer(201));
    expect((await time.advanceUntil(b.run("k", handler))).kind).toBe("unknown");
    expect(handler).not.toHaveBeenCalled();
  });

  it("is marked by the sweeper, keeps its fence, and still counts when the slow owner answers", async () => {
    const finish = gate();
    const { worker, time } = await refunds();
    const slow = await worker();
    slow.store.renew = () => Promise.reject(new Error("paused"));
    slow.store.markUnknown = () => Promise.reject(new StoreFailure("unavailable", "paused"));
    const first = slow.run("k", async () => {
      await finish.promise;
      return answer(201);
    });
    await time.advance(LEASE_MS + 10);
    expect((await time.advanceUntil(first)).kind).toBe("lease_lost");
    const b = await worker();
    expect(await time.advanceUntil(b.sweeper.runOnce())).toMatchObject({ marked: 1 });
    finish.open();
    await time.advance(10);
    expect(await b.run("k", async () => answer(500))).toMatchObject({ kind: "replayed", outcome: { status: 201 } });
  });

  it("runs again after a crash only where the operation says that this is allowed (V10)", async () => {
    const { worker, time } = await refunds({ afterCrash: "runAgain" });
    const dying = await worker();
    dying.store.renew = () => Promise.reject(new Error("dead"));
    dying.store.markUnknown = () => Promise.reject(new StoreFailure("unavailable", "dead"));
    void dying.run("k", () => new Promise(() => {}));
    await time.advance(LEASE_MS + 10);
    const b = await worker();
    expect((await time.advanceUntil(b.run("k", async () => answer(201)))).kind).toBe("completed");
  });

  it("is reconciled only when no old attempt can be at work any more (V11, V12)", async () => {
    const asked = vi.fn(async () => notDone());
    const { worker, time } = await refunds({ reconcile: asked });
    const dying = await worker();
    dying.store.renew = () => Promise.reject(new Error("dead"));
    dying.store.markUnknown = () => Promise.reject(new StoreFailure("unavailable", "dead"));
    void dying.run("k", () => new Promise(() => {}));
    await time.advance(LEASE_MS + 10);
    const b = await worker();
    expect((await time.advanceUntil(b.run("k", async () => answer(201)))).kind).toBe("unknown");
    expect(asked).not.toHaveBeenCalled();
    await time.advance(MAX_MS + LEASE_MS);
    expect((await time.advanceUntil(b.run("k", async () => answer(201)))).kind).toBe("completed");
    expect(asked).toHaveBeenCalledTimes(1);
  });

  it("takes what reconcile found for its answer, from then on", async () => {
    const { worker, time } = await refunds({ reconcile: async () => happened(ok({ refund: 1 })) });
    const { run } = await worker();
    expect((await run("k", async () => answer(500))).kind).toBe("provisional");
    const handler = vi.fn(async () => answer(201));
    const settled = await time.advanceUntil(run("k", handler));
    expect(settled).toMatchObject({ kind: "replayed", outcome: { status: 200 } });
    expect(await run("k", handler)).toEqual(settled);
    expect(handler).not.toHaveBeenCalled();
  });

  it("stays unknown while reconcile cannot say, or throws", async () => {
    const { worker, time } = await refunds({ reconcile: () => Promise.reject(new Error("down")) });
    const { run } = await worker();
    await run("k", async () => answer(500));
    expect((await time.advanceUntil(run("k", async () => answer(201)))).kind).toBe("unknown");
  });

  it("is recorded although the database blinks between effect and record", async () => {
    const { worker, time } = await refunds();
    const { run, store } = await worker();
    const complete = store.complete.bind(store);
    let failures = 2;
    store.complete = async (...args) => {
      if (failures-- > 0) throw new StoreFailure("unavailable", "blink");
      return complete(...args);
    };
    expect((await time.advanceUntil(run("k", async () => answer(201)))).kind).toBe("completed");
  });

  it("re-sends a claim whose answer was lost, with the same fence", async () => {
    const { worker, time } = await refunds();
    const { run, store } = await worker();
    const claim = store.claim.bind(store);
    let lost = 1;
    store.claim = async (...args) => {
      const entry = await claim(...args);
      if (lost-- > 0) throw new StoreFailure("unavailable", "the answer was lost");
      return entry;
    };
    expect((await time.advanceUntil(run("k", async () => answer(201)))).kind).toBe("completed");
  });

  it("is refused while the store is down, unless the operation may run unprotected", async () => {
    for (const [onStoreDown, kind] of [
      ["refuse", "store_unavailable"],
      ["run", "unprotected"],
    ] as const) {
      const { worker, time } = await refunds({ onStoreDown });
      const { run, store } = await worker();
      store.read = () => Promise.reject(new StoreFailure("unavailable", "down"));
      expect((await time.advanceUntil(run("k", async () => answer(201)))).kind).toBe(kind);
    }
  });

  it("answers a hung handler's client, and leaves the key to recovery (Q1)", async () => {
    const { worker, time } = await refunds();
    const { run } = await worker();
    expect((await time.advanceUntil(run("k", () => new Promise(() => {})))).kind).toBe("lease_lost");
    expect((await run("k", async () => answer(201))).kind).toBe("unknown");
  });
});
