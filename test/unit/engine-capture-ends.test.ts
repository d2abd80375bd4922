import { createOncekey, notDone, type OncekeyOptions, type Outcome, type Reconcile, StoreFailure } from "oncekey";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { type FakeClock, type FaultyMethod, fakeClock, faultyStore, type StoreFault } from "oncekey/testing";
import { describe, expect, it, vi } from "vitest";
import { runCaptured } from "../support/captured.ts";
import { gate } from "../support/gate.ts";

const LEASE_MS = 1_000;
const MAX_MS = 4_000;
/** How long an old attempt may be at work yet: its whole time, and the longest pause assumed of a process. */
const QUIET_MS = MAX_MS + LEASE_MS;

interface Given {
  readonly plan?: readonly { readonly method: FaultyMethod; readonly fault: StoreFault; readonly nth?: number }[];
  readonly reconcile?: Reconcile;
  readonly onStoreDown?: "run";
  readonly once?: Partial<OncekeyOptions<MemoryTransaction>>;
  /** Another process's world. Default: a new one. */
  readonly beside?: { readonly time: FakeClock; readonly store: MemoryStore };
}

const answer = (status: number): Outcome => ({ status, headers: [], body: new Uint8Array([1, 0, 255]) });

/** A captured operation, and what its runs tell the store at their ends. */
async function refunds({ plan = [], once: options, beside, ...definition }: Given = {}) {
  const time = beside?.time ?? fakeClock();
  const store = beside?.store ?? memoryStore({ clock: time.now });
  const told: [what: string, given: unknown][] = [];
  const view = Object.create(store) as MemoryStore;
  let id: Uint8Array = new Uint8Array();
  const { claim, release, markUnknown, complete } = store;
  view.claim = (entry, ...more) => {
    id = entry.id;
    return claim(entry, ...more);
  };
  view.release = (entry, fence, keep) => {
    told.push(["release", keep]);
    return release(entry, fence, keep);
  };
  view.markUnknown = (entry, fence, mark) => {
    told.push(["mark", mark]);
    return markUnknown(entry, fence, mark);
  };
  view.complete = (entry, fence, completion) => {
    told.push(["complete", completion.state]);
    return complete(entry, fence, completion);
  };
  const faulty = faultyStore(view, { script: plan });
  const onError = vi.fn<NonNullable<OncekeyOptions<MemoryTransaction>["onError"]>>();
  const once = createOncekey({ store: faulty.store, clock: time.clock, leaseMs: LEASE_MS, onError, ...options });
  const operation = once.capture({ name: "refunds.create", version: 1, maxDurationMs: MAX_MS, ...definition });
  await once.start();
  const run = (handler: () => Promise<Outcome>) => time.advanceUntil(runCaptured(operation, { handler }));
  return { time, store, view, told, run, onError, pending: faulty.pending, entry: () => store.read(id), operation };
}

const reconcile: Reconcile = async () => notDone();

describe("what a captured run leaves where its outcome is unknown", () => {
  it.each([
    ["nobody can be asked", undefined, null],
    ["somebody can be asked", reconcile, 1_000],
  ])("after a 5xx: its answer for now, and when to ask (%s)", async (_, ask, sweepInMs) => {
    const { run, told, entry } = await refunds(ask && { reconcile: ask });
    expect(await run(async () => answer(502))).toEqual({ kind: "provisional", outcome: answer(502) });
    expect(told).toMatchObject([
      ["mark", { reason: "handler_failed", sweepInMs, quietMs: QUIET_MS, provisional: { status: 502 } }],
    ]);
    expect(await entry()).toMatchObject({
      state: "needs_recovery",
      reason: "handler_failed",
      outcome: { status: 502 },
    });
  });

  it("after a throw: no answer, and the error for its caller", async () => {
    const { run, told } = await refunds({ reconcile });
    const boom = new Error("boom");
    await expect(run(() => Promise.reject(boom))).rejects.toBe(boom);
    expect(told).toEqual([
      ["mark", { reason: "handler_threw", sweepInMs: 1_000, quietMs: QUIET_MS, provisional: null }],
    ]);
  });

  it("after a throw that could not be marked: the error all the same, and word of the other one", async () => {
    const { run, onError, view } = await refunds();
    const [boom, away] = [new Error("boom"), new StoreFailure("unavailable", "away")];
    view.markUnknown = () => Promise.reject(away);
    await expect(run(() => Promise.reject(boom))).rejects.toBe(boom);
    expect(onError).toHaveBeenCalledWith(away, { operation: "refunds.create", at: "mark" });
  });

  it("after its time is over: the mark of a lost lease, whose rest begins when that lease ends", async () => {
    const { run, told } = await refunds({ reconcile });
    expect(await run(() => new Promise(() => {}))).toEqual({ kind: "lease_lost", retryAfterMs: 5_000 });
    expect(told).toEqual([
      ["mark", { reason: "lease_lost", sweepInMs: LEASE_MS + QUIET_MS, quietMs: QUIET_MS, provisional: null }],
    ]);
  });

  it("after its time is over and no mark could be made: the same answer", async () => {
    const { run, view } = await refunds();
    view.markUnknown = () => Promise.reject(new StoreFailure("unavailable", "away"));
    expect(await run(() => new Promise(() => {}))).toEqual({ kind: "lease_lost", retryAfterMs: 5_000 });
  });

  it("after its process died: the mark of who finds it", async () => {
    const dying = await refunds({ reconcile });
    dying.view.renew = () => new Promise(() => {});
    void runCaptured(dying.operation, { handler: () => new Promise(() => {}) });
    await dying.time.advance(1);
    dying.view.markUnknown = () => new Promise(() => {});
    await dying.time.advance(LEASE_MS);
    const { run, told } = await refunds({ reconcile, beside: dying });
    expect((await run(async () => answer(201))).kind).toBe("unknown");
    expect(told).toEqual([
      ["mark", { reason: "owner_lost", sweepInMs: QUIET_MS, quietMs: QUIET_MS, provisional: null }],
    ]);
  });

  it("after a status that HTTP has not: no answer", async () => {
    const highest = await refunds();
    expect((await highest.run(async () => answer(599))).kind).toBe("provisional");
    expect(highest.told).toMatchObject([["mark", { provisional: { status: 599 } }]]);
    const none = await refunds();
    expect((await none.run(async () => answer(600))).kind).toBe("provisional");
    expect(none.told).toMatchObject([["mark", { reason: "handler_failed", provisional: null }]]);
  });
});

describe("a captured run that did nothing", () => {
  it("leaves nothing", async () => {
    const { run, told, entry } = await refunds();
    expect(await run(async () => answer(429))).toEqual({ kind: "not_begun", outcome: answer(429) });
    expect(told).toEqual([["release", false]]);
    expect(await entry()).toBe(null);
  });
});

describe("the record of a captured run", () => {
  it("whose answer was lost is found to be there", async () => {
    const { run, told, pending } = await refunds({ plan: [{ method: "complete", fault: "answer_lost" }] });
    expect(await run(async () => answer(201))).toEqual({ kind: "completed", outcome: answer(201) });
    expect(pending).toEqual([]);
    expect(told).toEqual([
      ["complete", "succeeded"],
      ["complete", "succeeded"],
    ]);
    expect((await run(async () => answer(500))).kind).toBe("replayed");
  });

  it("is tried ten times; then nobody knows whether it is there", async () => {
    const plan = Array.from({ length: 12 }, () => ({ method: "complete", fault: "unavailable" }) as const);
    const { run, pending, entry } = await refunds({ plan, once: { leaseMs: 600_000 } });
    expect(await run(async () => answer(201))).toMatchObject({ kind: "commit_unknown" });
    expect(pending).toHaveLength(2);
    expect(await entry()).toMatchObject({ state: "in_progress", outcome: null });
  });

  it("that cannot be made is no reason to run a second time, though the operation may run unprotected", async () => {
    const plan = Array.from({ length: 10 }, () => ({ method: "complete", fault: "unavailable" }) as const);
    const handler = vi.fn(async () => answer(201));
    const { run } = await refunds({ plan, onStoreDown: "run" });
    expect((await run(handler)).kind).toBe("commit_unknown");
    expect(handler).toHaveBeenCalledTimes(1);
  });

  it("is that of the entry's owner only", async () => {
    const { run, view, store, entry } = await refunds();
    const taken = new Uint8Array(16).fill(7);
    const { takeOver } = store;
    const result = await run(async () => {
      const seen = await entry();
      if (seen === null) throw new Error("there is no entry");
      view.complete = async (id) => {
        // Another attempt has taken the entry over: the fence matches nothing any more.
        const state = { fence: seen.fence, attempt: seen.attempt, state: "in_progress" as const };
        await takeOver(id, state, taken, 1_000).catch(() => null);
        return false;
      };
      return answer(201);
    });
    expect(result.kind).toBe("lease_lost");
  });

  it("counts though it comes after the lease was lost, as long as nobody took the entry over", async () => {
    const { run, time, entry, onError } = await refunds();
    const late = gate();
    expect((await run(() => late.promise.then(() => answer(201)))).kind).toBe("lease_lost");
    late.open();
    await time.advance(10);
    expect(await entry()).toMatchObject({ state: "succeeded", outcome: { status: 201 } });
    expect((await run(async () => answer(500))).kind).toBe("replayed");
    expect(onError).not.toHaveBeenCalled();
  });

  it("that comes late and cannot be made is told of", async () => {
    const { run, time, onError } = await refunds();
    const late = gate();
    const boom = new Error("boom");
    expect((await run(() => late.promise.then(() => Promise.reject(boom)))).kind).toBe("lease_lost");
    late.open();
    await time.advance(10);
    const at = "late answer of a handler that lost its lease";
    expect(onError).toHaveBeenCalledWith(boom, { operation: "refunds.create", at });
  });
});
