import { created, createOncekey, notDone, type Outcome, type Reconcile } from "oncekey";
import { type MemoryStore, memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it, vi } from "vitest";
import { runCaptured } from "../support/captured.ts";
import { chargesWorld, LEASE_MS } from "../support/charges.ts";
import { gate } from "../support/gate.ts";
import { provider } from "../support/provider.ts";

const MAX_MS = 4_000;
const answer = (status: number): Outcome => ({ status, headers: [], body: new Uint8Array() });

function world(reconcile: Reconcile) {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const worker = async (own: { onPoint?: (point: string) => Promise<void>; timers?: boolean } = {}) => {
    // A stopped process: its clock goes on, its timers do not fire before it does.
    const clock = own.timers === false ? { ...time.clock, after: () => () => {} } : time.clock;
    const { onPoint } = own;
    const once = createOncekey({
      store: Object.create(store) as MemoryStore,
      clock,
      leaseMs: LEASE_MS,
      onError: () => {},
      ...(onPoint && { onPoint }),
    });
    const operation = once.capture({ name: "refunds.create", version: 1, maxDurationMs: MAX_MS, reconcile });
    await once.start();
    return (handler: () => Promise<Outcome>) => runCaptured(operation, { handler });
  };
  return { time, worker };
}

describe("an attempt whose lease ran out", () => {
  it("does not begin a captured handler: somebody else may have run it meanwhile", async () => {
    const { time, worker } = world(async () => notDone());
    const wakeUp = gate();
    const stopped = await worker({
      timers: false,
      onPoint: async (point) => {
        if (point === "claim:after") await wakeUp.promise;
      },
    });
    const handler = vi.fn(async () => answer(201));
    const first = stopped(handler);
    await time.advance(LEASE_MS + 1);
    const other = await worker();
    expect((await time.advanceUntil(other(handler))).kind).toBe("unknown");
    await time.advance(MAX_MS + 2 * LEASE_MS);
    expect((await time.advanceUntil(other(handler))).kind).toBe("completed");
    wakeUp.open();
    await time.advanceUntil(first.catch(() => {}));
    expect(handler).toHaveBeenCalledTimes(1);
  });

  it("does not begin a phase's code, having waited too long for its transaction", async () => {
    const { worker, time, store } = chargesWorld({ maxDurationMs: 2_000 });
    let begun = 0;
    const w = await worker({
      psp: provider(),
      at: (place) => {
        if (place === "in_phase") begun++;
      },
    });
    const queue = gate();
    const transaction = store.transaction.bind(store);
    store.transaction = async (body) => {
      await queue.promise;
      return transaction(body);
    };
    const first = w.run("k");
    await time.advance(2_500);
    queue.open();
    await time.advanceUntil(first.catch(() => {}));
    await time.advance(1);
    expect(begun).toBe(0);
  });

  it("is not begun at all after a slow look at its journal", async () => {
    const { worker, time, store } = chargesWorld({ psp: provider() });
    const dying = await worker({
      once: { clock: { ...time.clock, after: () => () => {} } },
      at: (place) => (place === "before_call" ? new Promise(() => {}) : undefined),
    });
    void dying.run("k").catch(() => {});
    await time.advance(LEASE_MS + 10);
    const starts = vi.fn();
    const w = await worker({
      at: (place) => {
        if (place === "start") starts();
      },
    });
    const slow = gate();
    const journal = store.journal.bind(store);
    store.journal = async (id) => {
      await slow.promise;
      return journal(id);
    };
    store.renew = () => Promise.reject(new Error("down"));
    const second = w.run("k");
    await time.advance(LEASE_MS * 2);
    slow.open();
    await time.advanceUntil(second.catch(() => {}));
    await time.advance(1);
    expect(starts).not.toHaveBeenCalled();
  });

  it("does not cancel at the other side what its successor may have found", async () => {
    const psp = provider();
    psp.script.push("lost");
    psp.answers.push("none");
    const cancel = vi.fn(psp.cancel);
    const { worker, time } = chargesWorld({ psp });
    const findDone = gate();
    const w = await worker({
      once: { clock: { ...time.clock, after: () => () => {} } },
      recover: (p) => ({
        find: async ({ key }) => {
          const found = await p.find(key);
          await findDone.promise;
          return found;
        },
        cancel: async ({ key }) => cancel(key),
      }),
    });
    const first = w.run("k");
    await time.advance(LEASE_MS * 3);
    findDone.open();
    await time.advanceUntil(first.catch(() => {}));
    expect(cancel).not.toHaveBeenCalled();
  });
});

describe("an attempt that ended", () => {
  it("sends no call that was left un-awaited", async () => {
    const time = fakeClock();
    const store = memoryStore({ clock: time.now });
    const atCall = gate();
    const once = createOncekey({
      store,
      clock: time.clock,
      onPoint: (point) => (point === "call:authorize:before" ? atCall.promise : undefined),
      onError: () => {},
    });
    const sent: number[] = [];
    let fails = true;
    const charges = once.phases({
      name: "charges",
      version: 1,
      async run(op) {
        const { amount } = op.input.body as { amount: number };
        const call = op.call("authorize", {
          timeoutMs: 500,
          request: { amount },
          run: async () => {
            sent.push(amount);
            return { id: 1 };
          },
          recover: { dedupes: { forMs: 3_600_000 } },
        });
        if (fails) await Promise.all([call, Promise.reject(new Error("the other branch failed"))]);
        await call;
        return op.complete(async () => created("/1", {}));
      },
    });
    await once.start();
    const run = (amount: number) =>
      once.run(charges, { scope: { tenant: "a", client: null }, key: "k", input: { body: { amount } }, waitMs: 0 });
    await expect(time.advanceUntil(run(1))).rejects.toThrow("the other branch failed");
    fails = false;
    atCall.open();
    // The first amount may have been sent: another payload under this key must not be.
    const other = await time.advanceUntil(run(2));
    await time.advance(1_000);
    expect({ kind: other.kind, sent: sent.length }).not.toEqual({ kind: "completed", sent: 2 });
  });
});

describe("a captured handler that answered 5xx", () => {
  it("is not reconciled while it may still be at work", async () => {
    const effects: string[] = [];
    const { time, worker } = world(async () => notDone());
    const w = await worker();
    const slow = gate();
    // A time-out middleware answers, the handler behind it goes on.
    const first = await time.advanceUntil(
      w(async () => {
        void slow.promise.then(() => effects.push("first"));
        return answer(504);
      }),
    );
    expect(first.kind).toBe("provisional");
    await time.advanceUntil(
      w(async () => {
        effects.push("second");
        return answer(201);
      }),
    );
    slow.open();
    await time.advance(1);
    expect(effects).toHaveLength(1);
  });
});
