import { describe, expect, it } from "vitest";
import { chargesWorld, LEASE_MS } from "../support/charges.ts";
import { gate } from "../support/gate.ts";
import { provider } from "../support/provider.ts";

describe("settlesWithinMs", () => {
  it.each([Number.NaN, 100])(
    "is refused as %s, with a time-out of 500 ms: none would be believed too early",
    async (ms) => {
      const psp = provider();
      psp.script.push("hang");
      const { worker, time } = chargesWorld({
        psp,
        timeoutMs: 500,
        recover: (p) => ({ find: ({ key }) => p.find(key), settlesWithinMs: ms }),
      });
      const w = await worker();
      const first = w.run("k");
      await time.advanceUntil(first.catch(() => {}));
      expect(psp.sent.length).toBeLessThanOrEqual(1);
    },
  );

  it("counts from the sending, however late the intent's commit was answered", async () => {
    const psp = provider();
    psp.script.push("late");
    const call = psp.call;
    let calls = 0;
    // The first call is accepted by the other side, and its sender dies before the answer.
    psp.call = (key) => (calls++ === 0 ? call(key).catch(() => new Promise(() => {})) : call(key));
    const { worker, time, store } = chargesWorld({
      psp,
      timeoutMs: 4_000,
      recover: (p) => ({ find: ({ key }) => p.find(key), settlesWithinMs: 5_000 }),
    });
    const a = await worker();
    const own = a.once.internals.context.store;
    const openIntent = store.openIntent.bind(store);
    const answered = gate();
    // Committed at once, answered after 4.9 s; renewals go on over other connections.
    own.openIntent = async (...all) => {
      const intent = await openIntent(...all);
      await answered.promise;
      return intent;
    };
    void a.run("k").catch(() => {});
    await time.advance(4_900);
    answered.open();
    await time.advance(1);
    expect(psp.sent).toHaveLength(1);
    own.renew = () => Promise.reject(new Error("dead"));
    own.suspend = () => Promise.reject(new Error("dead"));
    own.release = () => Promise.reject(new Error("dead"));
    // Sent little more than a second ago: it may land for almost another 4 s.
    await time.advance(LEASE_MS + 200);
    const b = await worker();
    await time.advanceUntil(b.run("k").catch(() => {}));
    psp.land();
    expect(psp.landed).toHaveLength(1);
  });
});
