import { memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { keepLease } from "../../src/engine/lease.ts";

const LEASE_MS = 30_000;
/** A tenth of the lease, at most two seconds. */
const MARGIN_MS = 2_000;

/** A lease whose renewals give what the test says, each at the instant it is told to. */
function lease(renew: (nth: number) => Promise<boolean>, maxDurationMs = 600_000) {
  const time = fakeClock();
  let renewals = 0;
  const store = Object.assign(memoryStore({ clock: time.now }), { renew: () => renew(++renewals) });
  const id = new Uint8Array(32);
  const fence = new Uint8Array(16);
  const terms = { store, clock: time.clock, id, fence, leaseMs: LEASE_MS, maxDurationMs, claimSentAtMs: 0 };
  return { time, kept: keepLease(terms), renewals: () => renewals };
}

describe("a lease", () => {
  it("is lost at once where a renewal matches no row, long before its deadline", async () => {
    const { time, kept, renewals } = lease(async () => false);
    await time.advance(LEASE_MS / 3 - 1);
    expect(kept.signal.aborted).toBe(false);
    await time.advance(1);
    expect(kept.signal.reason).toMatchObject({ name: "LeaseLost", message: expect.stringContaining("took over") });
    expect(() => kept.check()).toThrow("took over");
    await time.advance(LEASE_MS);
    expect(renewals()).toBe(1);
  });

  it("counts its deadline from before the last good renewal was sent, however late that was answered", async () => {
    let answer = (_kept: boolean) => {};
    const slow = new Promise<boolean>((resolve) => {
      answer = resolve;
    });
    const { time, kept } = lease((nth) => (nth === 1 ? slow : Promise.reject(new Error("the database is away"))));
    await time.advance(LEASE_MS / 3 + 15_000);
    answer(true);
    await time.advance(0);
    const deadlineAtMs = LEASE_MS / 3 + LEASE_MS - MARGIN_MS;
    await time.advance(deadlineAtMs - 1 - (LEASE_MS / 3 + 15_000));
    expect(() => kept.check()).not.toThrow();
    await time.advance(1);
    expect(() => kept.check()).toThrow("its time ran out");
  });

  it("is tried again soon after a renewal that failed, until one is answered", async () => {
    const { time, kept, renewals } = lease((nth) =>
      nth < 4 ? Promise.reject(new Error("away")) : Promise.resolve(true),
    );
    await time.advance(LEASE_MS / 3 + 3 * (LEASE_MS / 10));
    expect(renewals()).toBe(4);
    await time.advance(LEASE_MS / 3 - 1);
    expect(renewals()).toBe(4);
    expect(kept.signal.aborted).toBe(false);
  });

  it("is renewed no more once it was stopped or its whole time is over", async () => {
    const stopped = lease(async () => true);
    stopped.kept.stop();
    await stopped.time.advance(LEASE_MS * 3);
    expect([stopped.renewals(), stopped.kept.signal.aborted]).toEqual([0, false]);
    const over = lease(async () => true, 2 * LEASE_MS);
    await over.time.advance(2 * LEASE_MS - 1);
    expect(over.kept.signal.aborted).toBe(false);
    await over.time.advance(1);
    expect(over.kept.signal.reason).toMatchObject({ message: expect.stringContaining("its time ran out") });
  });
});
