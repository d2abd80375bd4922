import {
  createOncekey,
  happened,
  notDone,
  type Outcome,
  ok,
  type Reconcile,
  type StoredEntry,
  StoreFailure,
  unknown,
} from "oncekey";
import { type MemoryStore, memoryStore } from "oncekey/memory";
import { createSweeper } from "oncekey/sweeper";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it, vi } from "vitest";
import { runCaptured } from "../support/captured.ts";
import { gate } from "../support/gate.ts";

const LEASE_MS = 1_000;
const MAX_MS = 4_000;
/** Lease, duration and one more lease: how long after its claim an old attempt may still write. */
const QUIET_MS = LEASE_MS + MAX_MS + LEASE_MS;

const answer = (status: number): Outcome => ({ status, headers: [], body: new Uint8Array([1]) });
const hanging = () => new Promise<never>(() => {});

async function refunds(reconcile?: Reconcile, afterCrash?: "runAgain") {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const ids: Uint8Array[] = [];
  const worker = async (version = 1) => {
    const own = Object.create(store) as MemoryStore;
    own.claim = (entry, leaseMs) => {
      ids.push(entry.id);
      return store.claim(entry, leaseMs);
    };
    const once = createOncekey({ store: own, clock: time.clock, leaseMs: LEASE_MS, onError: () => {} });
    const operation = once.capture({
      name: "refunds.create",
      version,
      maxDurationMs: MAX_MS,
      ...(reconcile === undefined ? {} : { reconcile }),
      ...(afterCrash === undefined ? {} : { afterCrash }),
    });
    await once.start();
    const run = (handler: () => Promise<Outcome>) => runCaptured(operation, { handler });
    const sweeper = createSweeper(once);
    const sweep = () => time.advanceUntil(sweeper.runOnce());
    const sweepFor = async (ms: number, everyMs = 500) => {
      for (let passedMs = 0; passedMs < ms; passedMs += everyMs) {
        await sweep();
        await time.advance(everyMs);
      }
    };
    return { own, run, sweep, sweepFor };
  };
  /** A worker that dies while its handler runs; the handler itself may still write. */
  const dead = async (handler: () => Promise<Outcome> = hanging, version = 1) => {
    const dying = await worker(version);
    dying.own.renew = () => Promise.reject(new Error("dead"));
    dying.own.markUnknown = () => Promise.reject(new StoreFailure("unavailable", "dead"));
    dying.own.complete = () => Promise.reject(new StoreFailure("unavailable", "dead"));
    void dying.run(handler).catch(() => {});
    await time.advance(LEASE_MS + 10);
  };
  return { time, worker, dead, entry: () => store.read(ids[0] ?? new Uint8Array()) };
}

describe("what reconcile says", () => {
  it.each([`no\0${"x".repeat(5_000)}`, { secret: 1 }, undefined])(
    "is stored only as a short plain line (%#)",
    async (why) => {
      const { worker, dead, entry } = await refunds(async () => unknown(why as string));
      await dead();
      const b = await worker();
      await b.sweepFor(4 * QUIET_MS);
      const reason = (await entry())?.reason ?? "";
      expect(reason).toMatch(/^reconcile: (no x+|it could not say)$/);
      expect(reason.length).toBeLessThan(300);
    },
  );
});

const damaged = (entry: StoredEntry | null) =>
  entry?.outcome == null ? entry : { ...entry, outcome: { ...entry.outcome, content: new Uint8Array([0xff]) } };

describe("the sweeper and a captured run whose owner is gone", () => {
  it("marks it, and asks what it did only when no old attempt can be at work any more (V11, V12)", async () => {
    const effects: string[] = [];
    const write = gate();
    const asked = vi.fn(async () => (effects.length > 0 ? happened(ok({ refund: 1 })) : notDone()));
    const { time, worker, dead } = await refunds(asked);
    await dead(async () => {
      await write.promise;
      effects.push("old attempt");
      return answer(201);
    });
    const b = await worker();
    expect(await b.sweep()).toMatchObject({ marked: 1, reconciled: 0 });
    await b.sweepFor(MAX_MS - 1_000);
    expect(asked).not.toHaveBeenCalled();
    // The paused process wakes up and its handler writes: no fence reaches it.
    write.open();
    await b.sweepFor(QUIET_MS);
    expect(asked).toHaveBeenCalledTimes(1);
    const handler = vi.fn(async () => answer(201));
    expect(await time.advanceUntil(b.run(handler))).toMatchObject({ kind: "replayed", outcome: { status: 200 } });
    expect(handler).not.toHaveBeenCalled();
    expect(effects).toHaveLength(1);
  });

  it("gives the key free once it is proven that nothing was done", async () => {
    const { time, worker, dead } = await refunds(async () => notDone());
    await dead();
    const b = await worker();
    await b.sweepFor(2 * QUIET_MS);
    expect((await time.advanceUntil(b.run(async () => answer(201)))).kind).toBe("completed");
  });

  it("does not believe an early `not done` after an answer, and asks again in the end (V13)", async () => {
    const asked = vi.fn(async () => notDone());
    const { time, worker } = await refunds(asked);
    const { run, sweepFor, sweep } = await worker();
    expect((await run(async () => answer(500))).kind).toBe("provisional");
    await sweepFor(3_000);
    expect(asked).toHaveBeenCalledTimes(1);
    expect(await time.advanceUntil(run(hanging))).toMatchObject({ kind: "unknown", provisional: { status: 500 } });
    await sweepFor(3 * QUIET_MS);
    expect(asked).toHaveBeenCalledTimes(2);
    await sweep();
    expect((await time.advanceUntil(run(async () => answer(201)))).kind).toBe("completed");
  });

  it.each<[string, Reconcile]>([
    ["hangs", hanging],
    ["throws", () => Promise.reject(new Error("down"))],
    ["cannot say", async () => unknown("replica behind")],
    ["gives no response", async () => ({ kind: "happened", response: { kind: "response" } }) as never],
  ])("keeps it unknown, with the answer it gave, and asks with growing pauses while reconcile %s", async (_, says) => {
    const asked = vi.fn(says);
    const { time, worker } = await refunds(asked);
    const { run, sweepFor } = await worker();
    expect((await run(async () => answer(502))).kind).toBe("provisional");
    await sweepFor(600_000, 10_000);
    const before = asked.mock.calls.length;
    await sweepFor(1_800_000, 10_000);
    expect(asked.mock.calls.length - before).toBeGreaterThanOrEqual(5);
    expect(asked.mock.calls.length - before).toBeLessThanOrEqual(7);
    expect(await time.advanceUntil(run(hanging))).toMatchObject({ kind: "unknown", provisional: { status: 502 } });
  });

  it("shows the provisional answer to the retry that asked as well", async () => {
    const { time, worker } = await refunds(async () => unknown("replica behind"));
    const { run } = await worker();
    await run(async () => answer(503));
    expect(await time.advanceUntil(run(hanging))).toMatchObject({
      kind: "unknown",
      reason: "reconcile: replica behind",
      provisional: { status: 503 },
    });
  });

  it("asks on where the provisional answer cannot be read, and shows none", async () => {
    const { time, worker } = await refunds(async () => unknown("replica behind"));
    const { own, run } = await worker();
    await run(async () => answer(503));
    const { read, takeOver } = own;
    own.read = async (id) => damaged(await read(id));
    own.takeOver = async (...given) => damaged(await takeOver(...given));
    const asked = await time.advanceUntil(run(hanging));
    expect(asked).toMatchObject({ kind: "unknown", reason: "reconcile: replica behind", provisional: null });
  });

  it("leaves it to a person without reconcile, and tells from when on", async () => {
    const { entry, worker, dead } = await refunds();
    await dead();
    const { sweep, sweepFor } = await worker();
    expect(await sweep()).toMatchObject({ marked: 1 });
    const marked = await entry();
    expect(marked).toMatchObject({ state: "needs_recovery", reason: "owner_lost", clock: { sweepInMs: null } });
    expect(marked?.clock.settlesInMs).toBeGreaterThan(MAX_MS);
    expect(marked?.clock.settlesInMs).toBeLessThanOrEqual(MAX_MS + LEASE_MS);
    await sweepFor(60_000, 5_000);
    expect(await entry()).toMatchObject({ state: "needs_recovery", attempt: 1 });
  });

  it("leaves one that runs again after a crash to the retries", async () => {
    const { time, worker, dead } = await refunds(undefined, "runAgain");
    await dead();
    const b = await worker();
    expect(await b.sweep()).toMatchObject({ marked: 0, reconciled: 0 });
    expect((await time.advanceUntil(b.run(async () => answer(201)))).kind).toBe("completed");
  });

  it("is left alone by a sweeper and a retry of older code (Q3)", async () => {
    const asked = vi.fn(async () => notDone());
    const { worker, dead, time } = await refunds(asked);
    await dead(hanging, 2);
    const old = await worker(1);
    expect(await old.sweep()).toMatchObject({ marked: 0 });
    expect(await time.advanceUntil(old.run(hanging))).toMatchObject({ kind: "unknown", state: "in_progress" });
    expect(await (await worker(2)).sweep()).toMatchObject({ marked: 1 });
    await time.advance(2 * QUIET_MS);
    expect(await old.sweep()).toMatchObject({ reconciled: 0 });
    expect(await time.advanceUntil(old.run(hanging))).toMatchObject({ kind: "unknown", state: "needs_recovery" });
    expect(asked).not.toHaveBeenCalled();
  });
});
