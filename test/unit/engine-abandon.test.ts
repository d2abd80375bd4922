import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { TransactionAbandoned } from "../../src/core/store.ts";
import { orAbandoned, withinTime } from "../../src/engine/abandon.ts";
import type { EngineContext } from "../../src/engine/context.ts";
import { gate } from "../support/gate.ts";

/** What the two read of a context. */
function contextOf(abandons: boolean) {
  const time = fakeClock();
  let timers = 0;
  const clock = {
    ...time.clock,
    after(ms: number, fire: () => void) {
      timers++;
      const cancel = time.clock.after(ms, fire);
      return () => {
        timers--;
        cancel();
      };
    },
  };
  const context = { store: { traits: { abandons } }, settings: { clock } } as unknown as EngineContext;
  return { time, context, timers: () => timers };
}

describe("code inside a transaction", () => {
  it("is given up when its signal aborts", async () => {
    const { context } = contextOf(true);
    const lost = new AbortController();
    const running = orAbandoned(context, new Promise(() => {}), lost.signal);
    lost.abort(new Error("lost"));
    await expect(running).rejects.toBeInstanceOf(TransactionAbandoned);
  });

  it("is awaited all the same where the store cannot give a transaction up", async () => {
    const { context } = contextOf(false);
    const end = gate();
    const running = orAbandoned(
      context,
      end.promise.then(() => "done"),
      AbortSignal.abort(new Error("lost")),
    );
    end.open();
    expect(await running).toBe("done");
  });

  it("that fails by itself raises its own error, whatever that is", async () => {
    const { context } = contextOf(true);
    const boom = new Error("boom");
    const { signal } = new AbortController();
    await expect(orAbandoned(context, Promise.reject(boom), signal)).rejects.toBe(boom);
    // A signal that has not aborted has no reason, and neither has a throw of nothing.
    await expect(orAbandoned(context, Promise.reject(undefined), signal)).rejects.toBe(undefined);
  });

  it("that failed before its signal aborted raises its own error", async () => {
    const { context } = contextOf(true);
    const boom = new Error("boom");
    const lost = new AbortController();
    const running = orAbandoned(context, Promise.reject(boom), lost.signal);
    running.catch(() => {});
    // One turn of the queue of promises: the failure is told, and not yet looked at.
    await Promise.resolve();
    lost.abort(new Error("lost"));
    await expect(running).rejects.toBe(boom);
  });

  it("has its time, and leaves no timer behind", async () => {
    const { context, time, timers } = contextOf(true);
    expect(await withinTime(context, 1_000, async () => "done")).toBe("done");
    await expect(withinTime(context, 1_000, () => Promise.reject(new Error("boom")))).rejects.toThrow("boom");
    expect(timers()).toBe(0);
    const hung = withinTime(context, 1_000, () => new Promise(() => {}));
    hung.catch(() => {});
    await time.advance(999);
    expect(timers()).toBe(1);
    await time.advance(1);
    await expect(hung).rejects.toBeInstanceOf(TransactionAbandoned);
  });
});
