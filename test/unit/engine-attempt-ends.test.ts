import { created, createOncekey, type OncekeyOptions, type PhasesContext, type Recover } from "oncekey";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { type FakeClock, fakeClock } from "oncekey/testing";
import { describe, expect, it, vi } from "vitest";
import { StoreFailure } from "../../src/core/store.ts";
import { memoryBodies } from "../support/memory-bodies.ts";

type Op = PhasesContext<MemoryTransaction, unknown>;
type Code = (op: Op, attempt: number) => Promise<unknown>;

const LEASE_MS = 1_000;

interface Options {
  readonly maxAttempts?: number;
  readonly version?: number;
  readonly store?: MemoryStore;
  readonly time?: FakeClock;
  readonly once?: Partial<OncekeyOptions<MemoryTransaction>>;
}

/** One operation, its code, and what its attempts tell the store at their ends. */
async function world(code: Code, options: Options = {}) {
  const time = options.time ?? fakeClock();
  const store = options.store ?? memoryStore({ clock: time.now });
  const own = Object.create(store) as MemoryStore;
  const told: unknown[] = [];
  const { release, suspend, markUnknown } = store;
  own.release = (id, fence, keep) => {
    told.push(["release", keep]);
    return release(id, fence, keep);
  };
  own.suspend = (id, fence, waitMs) => {
    told.push(["suspend", waitMs]);
    return suspend(id, fence, waitMs);
  };
  own.markUnknown = (id, fence, mark) => {
    told.push(["mark", mark]);
    return markUnknown(id, fence, mark);
  };
  const onError = vi.fn<NonNullable<OncekeyOptions<MemoryTransaction>["onError"]>>();
  const once = createOncekey({ store: own, clock: time.clock, leaseMs: LEASE_MS, waitMs: 0, onError, ...options.once });
  let attempts = 0;
  const operation = once.phases({
    name: "charges.create",
    version: options.version ?? 1,
    maxAttempts: options.maxAttempts ?? 6,
    run: async (op) => (await code(op, ++attempts)) as never,
  });
  await once.start();
  const run = () =>
    time.advanceUntil(once.run(operation, { scope: { tenant: "a", client: null }, key: "k", input: {} }), 1);
  return { time, store, own, told, run, onError };
}

const boom = new Error("boom");
const phase = (op: Op) => op.phase("row", async () => 1);
const complete = (op: Op) => op.complete(async () => created("/1", {}));
const settles: Recover<unknown, unknown> = { find: async () => ({ kind: "none" }), settlesWithinMs: 20_000 };
const cancels: Recover<unknown, unknown> = { find: async () => ({ kind: "none" }), cancel: async () => {} };
const dedupes: Recover<unknown, unknown> = { dedupes: { forMs: 3_600_000 } };
/** A call that is answered with what cannot be stored, so that it stays open and its attempt throws. */
const openCall = (op: Op, recover: Recover<unknown, unknown>, before: () => Promise<unknown> = async () => {}) =>
  op.call("authorize", { timeoutMs: 500, request: {}, recover, run: () => before().then(() => ({ close() {} })) });

describe("an attempt that throws", () => {
  it("leaves nothing where it had begun nothing", async () => {
    const { run, told, store } = await world(() => Promise.reject(boom));
    await expect(run()).rejects.toBe(boom);
    expect(told).toEqual([["release", false]]);
    expect(store.rows("entry")).toEqual([]);
  });

  it("rests longer each time, and is shown to operators after the last", async () => {
    const { run, told, time } = await world(async (op) => {
      await phase(op);
      throw boom;
    });
    for (const restMs of [0, 1_000, 2_000, 4_000, 8_000]) {
      await expect(run()).rejects.toBe(boom);
      expect(told.splice(0)).toEqual([["suspend", restMs]]);
      if (restMs > 0) {
        await time.advance(restMs - 1);
        expect(await run()).toMatchObject({ kind: "busy" });
        await time.advance(1);
      }
    }
    await expect(run()).rejects.toBe(boom);
    const mark = {
      reason: "gave_up: the operation threw (Error)",
      provisional: null,
      sweepInMs: 32_000,
      quietMs: null,
    };
    expect(told).toEqual([["mark", mark]]);
  });

  it("keeps its entry while a step of it is under way", async () => {
    const { run, told } = await world((op) =>
      Promise.all([op.phase("row", () => new Promise(() => {})), Promise.reject(boom)]),
    );
    await expect(run()).rejects.toBe(boom);
    expect(told).toEqual([["suspend", 0]]);
  });

  class CardError extends Error {
    override readonly name = "CardError";
  }
  const named = (name: unknown) => Object.assign(new Error("4242 4242 4242 4242"), { name });
  it.each([
    ["its class", new CardError("4242"), "CardError"],
    ["a name that is as long as one may be", named("x".repeat(64)), "x".repeat(64)],
    ["no name that is too long", named("x".repeat(65)), "Error"],
    ["no name that is text", named("card 4242"), "Error"],
    ["no name that is none", named(7), "Error"],
    ["no empty one", named(""), "Error"],
    ["the type of what is no error", "4242 4242", "string"],
  ])("is told of by %s, and never by its message", async (_, error, shown) => {
    const { run, told } = await world(
      async (op) => {
        await phase(op);
        throw error;
      },
      { maxAttempts: 1 },
    );
    await expect(run()).rejects.toBe(error);
    expect(told).toMatchObject([["mark", { reason: `gave_up: the operation threw (${shown})`, sweepInMs: 1_000 }]]);
  });

  it("raises its own error though it could not be given back, and tells of that", async () => {
    const { run, own, onError } = await world(() => Promise.reject(boom));
    const away = new StoreFailure("unavailable", "away");
    own.release = () => Promise.reject(away);
    await expect(run()).rejects.toBe(boom);
    expect(onError).toHaveBeenCalledWith(away, { operation: "charges.create", at: "give back" });
  });
});

describe("an attempt that contention ends", () => {
  const contended: Code = async (op, attempt) => {
    if (attempt > 1) await phase(op);
    await op.phase("contended", () => Promise.reject(new StoreFailure("contention", "again")));
  };
  it("is given back at once where it had begun nothing, and with its rest where it had", async () => {
    const first = await world(contended);
    expect(await first.run()).toEqual({ kind: "contention", retryAfterMs: 1_000 });
    expect(first.told).toEqual([["release", false]]);
    const second = await world(async (op, attempt) => {
      await phase(op);
      return contended(op, attempt - 1);
    });
    expect(await second.run()).toEqual({ kind: "contention", state: "in_progress", retryAfterMs: 1_000 });
    expect(second.told).toEqual([["suspend", 0]]);
  });

  it("says so where it was the last", async () => {
    const { run, told } = await world(
      async (op) => {
        await phase(op);
        await op.phase("contended", () => Promise.reject(new StoreFailure("contention", "again")));
      },
      { maxAttempts: 1 },
    );
    expect(await run()).toMatchObject({ kind: "contention" });
    expect(told).toMatchObject([["mark", { reason: "gave_up: contention" }]]);
  });
});

describe("an attempt that throws with a call open", () => {
  it("keeps everybody away for as long as what was sent may land, counted from its intent", async () => {
    const { run, told, time } = await world((op) =>
      openCall(op, settles, () => new Promise((resolve) => void time.clock.after(300, () => resolve(null)))),
    );
    await expect(run()).rejects.toMatchObject({ code: "oncekey_value_unsupported" });
    // A second is the margin of the sending.
    expect(told).toEqual([["suspend", 20_700]]);
  });

  it("rests its second where the other side can be told to cancel", async () => {
    const { run, told } = await world((op) => openCall(op, cancels));
    await expect(run()).rejects.toMatchObject({ code: "oncekey_value_unsupported" });
    expect(told).toEqual([["suspend", 1_000]]);
  });

  it.each([
    ["all that was sent is written down", settles, 0],
    ["a deduped call is written down nowhere", dedupes, null],
  ])("tells how long there may be effects: %s", async (_, recover, quietMs) => {
    const { run, told } = await world((op) => openCall(op, recover), { maxAttempts: 1 });
    await expect(run()).rejects.toMatchObject({ code: "oncekey_value_unsupported" });
    expect(told).toMatchObject([["mark", { quietMs, sweepInMs: recover === settles ? 21_000 : 1_000 }]]);
  });
});

describe("what earlier attempts may have sent", () => {
  const after =
    (first: Code, next: Code): Code =>
    (op, attempt) =>
      attempt === 1 ? first(op, 1) : next(op, attempt);
  const throws: Code = async (op) => {
    await phase(op);
    throw boom;
  };
  it("is known where the last one came further than they did, by the same code", async () => {
    for (const [version, quietMs] of [
      [1, 0],
      [2, null],
    ] as const) {
      const first = await world(throws);
      await expect(first.run()).rejects.toBe(boom);
      const { run, told } = await world(
        async (op) => {
          await phase(op);
          await op.phase("more", async () => 1);
          throw boom;
        },
        { ...first, version, maxAttempts: 2 },
      );
      await expect(run()).rejects.toBe(boom);
      expect(told).toMatchObject([["mark", { quietMs }]]);
    }
  });

  it("is not known where the last one came not so far", async () => {
    const { run, told } = await world(
      after(throws, () => Promise.reject(boom)),
      { maxAttempts: 2 },
    );
    await expect(run()).rejects.toBe(boom);
    await expect(run()).rejects.toBe(boom);
    expect(told.at(-1)).toMatchObject(["mark", { quietMs: null }]);
  });
});

describe("an attempt whose end the store refuses", () => {
  it("has lost its lease, whatever it would have left", async () => {
    const hanging = (op: Op) =>
      op.call("ask", { timeoutMs: 100, request: {}, recover: settles, run: async () => Promise.reject(boom) });
    const suspended = await world(hanging);
    suspended.own.suspend = async () => false;
    expect(await suspended.run()).toEqual({ kind: "lease_lost", retryAfterMs: 1_000 });
    const marked = await world(hanging, { maxAttempts: 1 });
    marked.own.markUnknown = async () => false;
    expect(await marked.run()).toEqual({ kind: "lease_lost", retryAfterMs: 1_000 });
  });

  it("otherwise says how long its call stays unknown", async () => {
    const hanging = (op: Op) =>
      op.call("ask", { timeoutMs: 100, request: {}, recover: settles, run: async () => Promise.reject(boom) });
    const common = { kind: "unknown", provisional: null };
    const suspended = await (await world(hanging)).run();
    expect(suspended).toMatchObject({
      ...common,
      state: "in_progress",
      reason: "call_unknown: ask",
      retryAfterMs: 21_000,
    });
    const marked = await (await world(hanging, { maxAttempts: 1 })).run();
    expect(marked).toMatchObject({
      ...common,
      state: "needs_recovery",
      reason: "gave_up: call_unknown: ask",
      retryAfterMs: 5_000,
    });
  });
});

describe("a failure of the store", () => {
  const away = () => Promise.reject(new StoreFailure("unavailable", "away"));
  const unavailable = { kind: "store_unavailable", retryAfterMs: 1_000 };

  it("before anything of the key was seen says that there is nothing", async () => {
    const { run, own } = await world(complete);
    own.read = away;
    expect(await run()).toEqual(unavailable);
  });

  it("after the key was claimed says that it is in progress", async () => {
    const { run } = await world(async (op) => {
      await phase(op);
      await op.phase("more", away);
    });
    expect(await run()).toEqual({ ...unavailable, state: "in_progress" });
  });

  it("after that by which nothing could be left in order says so too", async () => {
    const { run, own } = await world(async (op) => {
      await phase(op);
      return openCall(op, settles, () => Promise.reject(boom));
    });
    own.suspend = away;
    expect(await run()).toEqual({ ...unavailable, state: "in_progress" });
  });

  it("that the operation raised itself counts as one", async () => {
    const first = await world(() => Promise.reject(new StoreFailure("contention", "again")));
    expect(await first.run()).toEqual({ kind: "contention", retryAfterMs: 1_000 });
    const second = await world(async (op) => {
      await phase(op);
      throw new StoreFailure("contention", "again");
    });
    expect(await second.run()).toEqual({ kind: "contention", state: "in_progress", retryAfterMs: 1_000 });
    expect(second.told).toEqual([["suspend", 0]]);
    const third = await world(away);
    expect(await third.run()).toEqual({ ...unavailable, state: "in_progress" });
    expect(third.told).toEqual([]);
  });

  it("after an entry was seen says its state, unless that has expired", async () => {
    const { run, own, time } = await world(async (op, attempt) => {
      await phase(op);
      if (attempt === 1) throw boom;
      return complete(op);
    });
    await expect(run()).rejects.toBe(boom);
    own.takeOver = away;
    expect(await run()).toEqual({ ...unavailable, state: "in_progress" });
    Reflect.deleteProperty(own, "takeOver");
    expect((await run()).kind).toBe("completed");
    await time.advance(30 * 24 * 3_600_000);
    own.forgetExpired = away;
    expect(await run()).toEqual(unavailable);
  });

  it("of bodies says that the answer is there", async () => {
    const bodyStore = memoryBodies();
    const long = (op: Op) => op.complete(async () => created("/1", { long: "x".repeat(10_000) }));
    const { run } = await world(long, { once: { bodyStore, bodyThresholdBytes: 1_000 } });
    expect((await run()).kind).toBe("completed");
    bodyStore.failure = new Error("away");
    expect(await run()).toEqual({ ...unavailable, state: "succeeded" });
  });
});
