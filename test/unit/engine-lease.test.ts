import { memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { keepLease, leaseFor, leaseLength } from "../../src/engine/lease.ts";

interface Given {
  readonly leaseMs?: number;
  readonly maxDurationMs?: number;
  readonly renews?: boolean;
  readonly claimSentAtMs?: number;
  renew?(nth: number): Promise<boolean>;
}

/** A lease, what was asked of its store, and how many of its timers wait. */
function kept({ leaseMs = 30_000, maxDurationMs = 600_000, renews = true, claimSentAtMs = 0, renew }: Given = {}) {
  const time = fakeClock();
  const asked: number[] = [];
  const timers = new Set<() => void>();
  const clock = {
    ...time.clock,
    after(ms: number, fire: () => void) {
      const once = () => {
        timers.delete(once);
        fire();
      };
      timers.add(once);
      const cancel = time.clock.after(ms, once);
      return () => {
        timers.delete(once);
        cancel();
      };
    },
  };
  const memory = memoryStore({ clock: time.now });
  const store = Object.assign(Object.create(memory) as typeof memory, {
    traits: { ...memory.traits, renews },
    async renew(_id: Uint8Array, _fence: Uint8Array, forMs: number) {
      asked.push(forMs);
      return renew === undefined ? true : renew(asked.length);
    },
  });
  const [id, fence] = [new Uint8Array(32), new Uint8Array(16)];
  const lease = keepLease({ store, clock, id, fence, leaseMs, maxDurationMs, claimSentAtMs });
  return { time, lease, store, asked, timers, id, fence };
}

const away = () => Promise.reject(new Error("away"));

describe("the length of a lease", () => {
  it("is the set one where it can be renewed, and the whole duration where it cannot", () => {
    const renewing = kept({ renews: true }).store;
    const once = kept({ renews: false }).store;
    expect(leaseLength(renewing, 30_000, 600_000)).toBe(30_000);
    expect(leaseLength(once, 30_000, 600_000)).toBe(600_000);
    expect(leaseLength(once, 30_000, 10_000)).toBe(30_000);
  });

  it("of a run that its host ends is so much longer that the local deadline is that end", () => {
    // A tenth is the margin, at most two seconds.
    expect(leaseFor(9_000)).toBe(10_000);
    expect(leaseFor(10_000)).toBe(11_112);
    expect(leaseFor(60_000)).toBe(62_000);
  });
});

describe("the local deadline", () => {
  it.each([
    ["a tenth before the end of a short lease", { leaseMs: 10_000 }, 9_000],
    ["two seconds before that of a long one", { leaseMs: 30_000 }, 28_000],
    ["counted from before the claim was sent", { leaseMs: 10_000, claimSentAtMs: -4_000 }, 5_000],
    ["never after the whole duration", { leaseMs: 30_000, maxDurationMs: 7_000 }, 7_000],
    [
      "at the whole duration where nothing can be renewed",
      { leaseMs: 1_000, maxDurationMs: 8_000, renews: false },
      7_200,
    ],
  ])("is %s", async (_, given, deadlineAtMs) => {
    const { time, lease } = kept({ ...given, renew: away });
    await time.advance(deadlineAtMs - 1);
    expect(() => lease.check()).not.toThrow();
    expect(lease.signal.aborted).toBe(false);
    await time.advance(1);
    expect(lease.signal.aborted).toBe(true);
    expect(() => lease.check()).toThrow("its time ran out");
  });

  it("is seen by a look at the clock, though no timer fires", () => {
    const time = fakeClock();
    let nowMs = 0;
    const clock = { monotonicMs: () => nowMs, after: () => () => {} };
    const store = memoryStore({ clock: time.now });
    const terms = { store, clock, id: new Uint8Array(32), fence: new Uint8Array(16), leaseMs: 10_000 };
    const lease = keepLease({ ...terms, maxDurationMs: 60_000, claimSentAtMs: 0 });
    nowMs = 8_999;
    expect(() => lease.check()).not.toThrow();
    nowMs = 9_000;
    expect(() => lease.check()).toThrow("its time ran out");
    expect(lease.signal.aborted).toBe(true);
  });
});

describe("the renewal of a lease", () => {
  it("comes every third of it, each time for its whole length", async () => {
    const { time, asked } = kept({ leaseMs: 30_000 });
    await time.advance(9_999);
    expect(asked).toEqual([]);
    await time.advance(1);
    expect(asked).toEqual([30_000]);
    await time.advance(20_000);
    expect(asked).toEqual([30_000, 30_000, 30_000]);
  });

  it("never goes past the whole duration, and its margin", async () => {
    const { time, asked, lease } = kept({ leaseMs: 30_000, maxDurationMs: 45_000 });
    await time.advance(44_999);
    // At 10, 20, 30 and 40 s; two seconds are the margin.
    expect(asked).toEqual([30_000, 27_000, 17_000, 7_000]);
    expect(lease.signal.aborted).toBe(false);
    await time.advance(1);
    expect(lease.signal.aborted).toBe(true);
  });

  it("is not sent where nothing can be renewed", async () => {
    const { time, asked } = kept({ leaseMs: 30_000, maxDurationMs: 60_000, renews: false });
    await time.advance(50_000);
    expect(asked).toEqual([]);
  });

  it("that failed is sent again after a tenth", async () => {
    const { time, asked } = kept({ leaseMs: 30_000, renew: (nth) => (nth === 1 ? away() : Promise.resolve(true)) });
    await time.advance(12_999);
    expect(asked).toHaveLength(1);
    await time.advance(1);
    expect(asked).toHaveLength(2);
    await time.advance(9_999);
    expect(asked).toHaveLength(2);
    await time.advance(1);
    expect(asked).toHaveLength(3);
  });

  it("that comes too late is not sent: another attempt may own the entry", async () => {
    let nowMs = 0;
    const fires: (() => void)[] = [];
    const clock = {
      monotonicMs: () => nowMs,
      after(_ms: number, fire: () => void) {
        fires.push(fire);
        return () => {};
      },
    };
    const { store, asked, id, fence } = kept();
    const lease = keepLease({ store, clock, id, fence, leaseMs: 30_000, maxDurationMs: 60_000, claimSentAtMs: 0 });
    nowMs = 28_000;
    // The process slept: its renewal's timer fires before that of the deadline.
    fires[1]?.();
    expect(asked).toEqual([]);
    expect(() => lease.check()).toThrow("its time ran out");
  });

  it("whose answer comes after the lease was stopped or lost changes nothing", async () => {
    for (const end of ["stop", "lose"] as const) {
      let answer = (_kept: boolean) => {};
      const slow = new Promise<boolean>((resolve) => {
        answer = resolve;
      });
      const { time, lease, asked, timers } = kept({ renew: () => slow });
      await time.advance(10_000);
      if (end === "stop") lease.stop();
      else lease.lose("the attempt is over");
      answer(end === "lose");
      await time.advance(40_000);
      expect(asked).toHaveLength(1);
      expect(timers.size).toBe(0);
      expect(lease.signal.aborted).toBe(end === "lose");
    }
  });
});

describe("a lease that is given up", () => {
  it("says why, for good", async () => {
    const { time, lease, timers } = kept();
    lease.lose("the attempt is over");
    lease.lose("for another reason");
    expect(timers.size).toBe(0);
    expect(lease.signal.reason).toMatchObject({
      name: "LeaseLost",
      message:
        "The operation lost its lease (the attempt is over). What was committed before is kept; retry with the same key.",
    });
    expect(() => lease.check()).toThrow("the attempt is over");
    await time.advance(60_000);
    expect(() => lease.check()).toThrow("the attempt is over");
  });

  it("is what its attempt was told", () => {
    const { lease, id, fence } = kept({ maxDurationMs: 60_000 });
    expect([lease.id, lease.fence, lease.maxDurationMs]).toEqual([id, fence, 60_000]);
  });

  it("has two timers while it is kept, and none when it is stopped", async () => {
    const { time, lease, timers } = kept();
    expect(timers.size).toBe(2);
    await time.advance(25_000);
    expect(timers.size).toBe(2);
    lease.stop();
    expect(timers.size).toBe(0);
  });
});
