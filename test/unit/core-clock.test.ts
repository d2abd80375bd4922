import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { type Clock, pause, systemClock } from "../../src/core/clock.ts";
import { systemRandom } from "../../src/core/random.ts";

/** A clock whose timers fire when the test says so. */
function handClock() {
  const waiting: { readonly ms: number; readonly fire: () => void }[] = [];
  const clock: Clock = {
    monotonicMs: () => 0,
    after(ms, fire) {
      const timer = { ms, fire };
      waiting.push(timer);
      return () => void waiting.splice(waiting.indexOf(timer), 1);
    },
  };
  return { clock, waiting };
}

/** How many more timers keep the process alive after `run`. Nothing else runs meanwhile: others have timers too. */
function heldBy(run: () => void): number {
  const held = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = held();
  run();
  return held() - before;
}

/** Whether a promise has come to its end already. */
const isOver = (promise: Promise<void>) =>
  Promise.race([promise.then(() => true), new Promise<boolean>((resolve) => setImmediate(resolve, false))]);

describe("the clock of this process", () => {
  it("never goes back, and fires once", async () => {
    const before = systemClock.monotonicMs();
    const fired: number[] = [];
    await new Promise<void>((resolve) => {
      // Holds the process: the clock's own timers must not.
      const alive = setInterval(() => {}, 1_000);
      systemClock.after(1, () => {
        fired.push(systemClock.monotonicMs());
        clearInterval(alive);
        resolve();
      });
    });
    expect(fired).toHaveLength(1);
    expect(fired[0]).toBeGreaterThanOrEqual(before);
  });

  it("has timers that keep no process alive, and that can be taken back", async () => {
    const fired: string[] = [];
    let takeBack = () => {};
    const held = heldBy(() => {
      takeBack = systemClock.after(0, () => fired.push("taken back"));
    });
    expect(held).toBe(0);
    takeBack();
    // Timers of one length fire in the order in which they were set.
    await new Promise<void>((resolve) => setTimeout(resolve, 0));
    expect(fired).toEqual([]);
  });
});

describe("a pause", () => {
  function paused(ms: number, signal?: AbortSignal) {
    const { clock, waiting } = handClock();
    let over: Promise<void> = Promise.reject(new Error("not begun"));
    over.catch(() => {});
    const held = heldBy(() => {
      over = pause(clock, ms, signal);
    });
    return { over, held, waiting };
  }

  it("is over when its time is, and keeps the process alive until then", async () => {
    const { signal } = new AbortController();
    const { over, held, waiting } = paused(250, signal);
    expect([held, waiting.map(({ ms }) => ms)]).toEqual([1, [250]]);
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    expect(await isOver(over)).toBe(false);
    expect(heldBy(() => waiting[0]?.fire())).toBe(-1);
    await over;
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  it("ends at once when its signal aborts, and leaves no timer behind", async () => {
    const controller = new AbortController();
    const { over, held, waiting } = paused(250, controller.signal);
    expect(heldBy(() => controller.abort())).toBe(-held);
    await over;
    expect(waiting).toEqual([]);
  });

  it("does not begin where its signal has aborted already", async () => {
    const { over, held, waiting } = paused(250, AbortSignal.abort());
    await over;
    expect([held, waiting]).toEqual([0, []]);
  });

  it("needs no signal", async () => {
    const { over, waiting } = paused(5);
    waiting[0]?.fire();
    await over;
    expect(waiting).toEqual([]);
  });
});

describe("the system's randomness", () => {
  it("gives as many bytes as were asked for, never the same", () => {
    const all = Array.from({ length: 50 }, () => systemRandom.bytes(16));
    expect(all.every((bytes) => bytes instanceof Uint8Array && bytes.length === 16)).toBe(true);
    expect(new Set(all.map((bytes) => Buffer.from(bytes).toString("hex"))).size).toBe(50);
    expect(systemRandom.bytes(0)).toHaveLength(0);
  });

  it("gives numbers from 0 to below 1", () => {
    const units = Array.from({ length: 50 }, () => systemRandom.unit());
    expect(units.every((unit) => unit >= 0 && unit < 1)).toBe(true);
    expect(new Set(units).size).toBeGreaterThan(1);
  });
});
