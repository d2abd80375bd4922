import { created } from "oncekey";
import { describe, expect, it } from "vitest";
import { StoreFailure } from "../../src/core/store.ts";
import { attemptsWorld, boom, complete, type Op, openCall, phase, settles } from "../support/attempts.ts";
import { memoryBodies } from "../support/memory-bodies.ts";

describe("a failure of the store", () => {
  const away = () => Promise.reject(new StoreFailure("unavailable", "away"));
  const unavailable = { kind: "store_unavailable", retryAfterMs: 1_000 };

  it("before anything of the key was seen says that there is nothing", async () => {
    const { run, own } = await attemptsWorld(complete);
    own.read = away;
    expect(await run()).toEqual(unavailable);
  });

  it("after the key was claimed says that it is in progress", async () => {
    const { run } = await attemptsWorld(async (op) => {
      await phase(op);
      await op.phase("more", away);
    });
    expect(await run()).toEqual({ ...unavailable, state: "in_progress" });
  });

  it("after that by which nothing could be left in order says so too", async () => {
    const { run, own } = await attemptsWorld(async (op) => {
      await phase(op);
      return openCall(op, settles, () => Promise.reject(boom));
    });
    own.suspend = away;
    expect(await run()).toEqual({ ...unavailable, state: "in_progress" });
  });

  it("that the operation raised itself counts as one", async () => {
    const first = await attemptsWorld(() => Promise.reject(new StoreFailure("contention", "again")));
    expect(await first.run()).toEqual({ kind: "contention", retryAfterMs: 1_000 });
    const second = await attemptsWorld(async (op) => {
      await phase(op);
      throw new StoreFailure("contention", "again");
    });
    expect(await second.run()).toEqual({ kind: "contention", state: "in_progress", retryAfterMs: 1_000 });
    expect(second.told).toEqual([["suspend", 0]]);
    const third = await attemptsWorld(away);
    expect(await third.run()).toEqual({ ...unavailable, state: "in_progress" });
    expect(third.told).toEqual([]);
  });

  it("after an entry was seen says its state, unless that has expired", async () => {
    const { run, own, time } = await attemptsWorld(async (op, attempt) => {
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
    const { run } = await attemptsWorld(long, { once: { bodyStore, bodyThresholdBytes: 1_000 } });
    expect((await run()).kind).toBe("completed");
    bodyStore.failure = new Error("away");
    expect(await run()).toEqual({ ...unavailable, state: "succeeded" });
  });
});
