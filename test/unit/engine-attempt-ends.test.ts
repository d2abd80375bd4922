import { describe, expect, it } from "vitest";
import { StoreFailure } from "../../src/core/store.ts";
import {
  attemptsWorld,
  boom,
  type Code,
  cancels,
  dedupes,
  type Op,
  openCall,
  phase,
  settles,
} from "../support/attempts.ts";

describe("an attempt that throws", () => {
  it("leaves nothing where it had begun nothing", async () => {
    const { run, told, store } = await attemptsWorld(() => Promise.reject(boom));
    await expect(run()).rejects.toBe(boom);
    expect(told).toEqual([["release", false]]);
    expect(store.rows("entry")).toEqual([]);
  });

  it("rests longer each time, and is shown to operators after the last", async () => {
    const { run, told, time } = await attemptsWorld(async (op) => {
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
    const { run, told } = await attemptsWorld((op) =>
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
    const { run, told } = await attemptsWorld(
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
    const { run, own, onError } = await attemptsWorld(() => Promise.reject(boom));
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
    const first = await attemptsWorld(contended);
    expect(await first.run()).toEqual({ kind: "contention", retryAfterMs: 1_000 });
    expect(first.told).toEqual([["release", false]]);
    const second = await attemptsWorld(async (op, attempt) => {
      await phase(op);
      return contended(op, attempt - 1);
    });
    expect(await second.run()).toEqual({ kind: "contention", state: "in_progress", retryAfterMs: 1_000 });
    expect(second.told).toEqual([["suspend", 0]]);
  });

  it("says so where it was the last", async () => {
    const { run, told } = await attemptsWorld(
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
    const { run, told, time } = await attemptsWorld((op) =>
      openCall(op, settles, () => new Promise((resolve) => void time.clock.after(300, () => resolve(null)))),
    );
    await expect(run()).rejects.toMatchObject({ code: "oncekey_value_unsupported" });
    // A second is the margin of the sending.
    expect(told).toEqual([["suspend", 20_700]]);
  });

  it("rests its second where the other side can be told to cancel", async () => {
    const { run, told } = await attemptsWorld((op) => openCall(op, cancels));
    await expect(run()).rejects.toMatchObject({ code: "oncekey_value_unsupported" });
    expect(told).toEqual([["suspend", 1_000]]);
  });

  it.each([
    ["all that was sent is written down", settles, 0],
    ["a deduped call is written down nowhere", dedupes, null],
  ])("tells how long there may be effects: %s", async (_, recover, quietMs) => {
    const { run, told } = await attemptsWorld((op) => openCall(op, recover), { maxAttempts: 1 });
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
      const first = await attemptsWorld(throws);
      await expect(first.run()).rejects.toBe(boom);
      const { run, told } = await attemptsWorld(
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
    const { run, told } = await attemptsWorld(
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
    const suspended = await attemptsWorld(hanging);
    suspended.own.suspend = async () => false;
    expect(await suspended.run()).toEqual({ kind: "lease_lost", retryAfterMs: 1_000 });
    const marked = await attemptsWorld(hanging, { maxAttempts: 1 });
    marked.own.markUnknown = async () => false;
    expect(await marked.run()).toEqual({ kind: "lease_lost", retryAfterMs: 1_000 });
  });

  it("otherwise says how long its call stays unknown", async () => {
    const hanging = (op: Op) =>
      op.call("ask", { timeoutMs: 100, request: {}, recover: settles, run: async () => Promise.reject(boom) });
    const common = { kind: "unknown", provisional: null };
    const suspended = await (await attemptsWorld(hanging)).run();
    expect(suspended).toMatchObject({
      ...common,
      state: "in_progress",
      reason: "call_unknown: ask",
      retryAfterMs: 21_000,
    });
    const marked = await (await attemptsWorld(hanging, { maxAttempts: 1 })).run();
    expect(marked).toMatchObject({
      ...common,
      state: "needs_recovery",
      reason: "gave_up: call_unknown: ask",
      retryAfterMs: 5_000,
    });
  });
});
