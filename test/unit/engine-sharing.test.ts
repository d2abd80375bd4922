import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import type { AnyResult } from "../../src/engine/run-result.ts";
import { createSharing } from "../../src/engine/sharing.ts";

const BUSY: AnyResult = { kind: "busy", retryAfterMs: 1 };
const id = (byte: number) => new Uint8Array(32).fill(byte);

function sharingOf(limits = { maxWaitersPerKey: 2, maxWaiters: 3 }) {
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
  const sharing = createSharing(clock, limits);
  /** A leader that ends when it is told to. */
  const lead = (key: string) => {
    let end = (_result: AnyResult) => {};
    let fail = (_error: unknown) => {};
    const ended = sharing.lead(
      key,
      () =>
        new Promise<AnyResult>((resolve, reject) => {
          end = resolve;
          fail = reject;
        }),
    );
    const run = sharing.running(key);
    if (run === undefined) throw new Error("nothing is led");
    return { ended, run, end: () => end(BUSY), fail: (error: unknown) => fail(error) };
  };
  return { time, sharing, lead, timers: () => timers };
}

describe("a run that duplicates of one process share", () => {
  it("is there from its beginning to its end, under its own name", async () => {
    const { sharing, lead } = sharingOf();
    expect(sharing.running("a")).toBe(undefined);
    const leader = lead("a");
    expect(sharing.running("b")).toBe(undefined);
    leader.end();
    expect(await leader.ended).toBe(BUSY);
    expect(sharing.running("a")).toBe(undefined);
  });

  it("gives those who wait its result, and leaves no timer behind", async () => {
    const { sharing, lead, timers } = sharingOf();
    const leader = lead("a");
    const [first, second] = [sharing.join(leader.run, 1_000), sharing.join(leader.run, 1_000)];
    expect(timers()).toBe(2);
    leader.end();
    expect(await first).toEqual({ kind: "result", result: BUSY });
    expect(await second).toEqual({ kind: "result", result: BUSY });
    expect(timers()).toBe(0);
  });

  it("that fails gives them its error, and hurts nobody where there are none", async () => {
    const { sharing, lead, timers } = sharingOf();
    const boom = new Error("boom");
    const leader = lead("a");
    const follower = sharing.join(leader.run, 1_000);
    leader.fail(boom);
    await expect(follower).rejects.toBe(boom);
    await expect(leader.ended).rejects.toBe(boom);
    expect(timers()).toBe(0);
    expect(sharing.running("a")).toBe(undefined);
  });

  it("is waited for no longer than asked", async () => {
    const { sharing, lead, time } = sharingOf();
    const leader = lead("a");
    let joined: unknown;
    void sharing.join(leader.run, 1_000).then((result) => {
      joined = result;
    });
    await time.advance(999);
    expect(joined).toBe(undefined);
    await time.advance(1);
    expect(joined).toEqual({ kind: "timeout" });
    leader.end();
  });

  it("has so many waiters at most, and its places are free again after a result, a time-out, a failure", async () => {
    const { sharing, lead, time } = sharingOf({ maxWaitersPerKey: 2, maxWaiters: 9 });
    const leader = lead("a");
    const waiting = [sharing.join(leader.run, 1_000), sharing.join(leader.run, 1_000)];
    expect(await sharing.join(leader.run, 1_000)).toEqual({ kind: "crowded" });
    await time.advance(1_000);
    expect(await Promise.all(waiting)).toEqual([{ kind: "timeout" }, { kind: "timeout" }]);
    const again = [sharing.join(leader.run, 1_000), sharing.join(leader.run, 1_000)];
    leader.fail(new Error("boom"));
    await Promise.allSettled([...again, leader.ended]);
    const next = lead("a");
    const last = [sharing.join(next.run, 1_000), sharing.join(next.run, 1_000)];
    next.end();
    expect(await Promise.all(last)).toEqual([
      { kind: "result", result: BUSY },
      { kind: "result", result: BUSY },
    ]);
  });

  it("counts the waiters of all runs of the process, those that poll included", async () => {
    const { sharing, lead, time } = sharingOf({ maxWaitersPerKey: 2, maxWaiters: 3 });
    const [a, b] = [lead("a"), lead("b")];
    const waiting = [sharing.join(a.run, 1_000), sharing.join(a.run, 1_000), sharing.join(b.run, 1_000)];
    expect(await sharing.join(b.run, 1_000)).toEqual({ kind: "crowded" });
    expect(sharing.place(id(1))).toBe(null);
    await time.advance(1_000);
    await Promise.all(waiting);
    const leave = [1, 2, 3].map((byte) => sharing.place(id(byte)));
    expect(leave).not.toContain(null);
    expect(await sharing.join(b.run, 1_000)).toEqual({ kind: "crowded" });
    leave[0]?.();
    const joined = sharing.join(b.run, 1_000);
    b.end();
    expect((await joined).kind).toBe("result");
    a.end();
  });
});

describe("a place among the waiters of an identity", () => {
  it("is there so many times for each, and again when one was left", () => {
    const { sharing } = sharingOf({ maxWaitersPerKey: 2, maxWaiters: 9 });
    const [first, second] = [sharing.place(id(1)), sharing.place(id(1))];
    expect([first, second]).not.toContain(null);
    expect(sharing.place(id(1))).toBe(null);
    expect(sharing.place(id(2))).not.toBe(null);
    first?.();
    const third = sharing.place(id(1));
    expect(third).not.toBe(null);
    expect(sharing.place(id(1))).toBe(null);
    second?.();
    third?.();
    expect([sharing.place(id(1)), sharing.place(id(1)), sharing.place(id(1))].map((one) => one === null)).toEqual([
      false,
      false,
      true,
    ]);
  });
});

describe("the owner of an identity in this process", () => {
  it("is known by its fingerprint until it gives it back", () => {
    const { sharing } = sharingOf();
    const [own, other] = [id(8), id(9)];
    expect(sharing.owner(id(1))).toBe(undefined);
    const disown = sharing.own(id(1), own);
    expect(sharing.owner(id(1))).toBe(own);
    expect(sharing.owner(id(2))).toBe(undefined);
    // One that was fenced out gives back late: its successor is here already.
    const disownOther = sharing.own(id(1), other);
    disown();
    expect(sharing.owner(id(1))).toBe(other);
    disownOther();
    expect(sharing.owner(id(1))).toBe(undefined);
  });
});
