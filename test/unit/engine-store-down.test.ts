import { createOncekey, happened, type Outcome, ok, type Reconcile, StoreFailure } from "oncekey";
import { type MemoryStore, memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it, vi } from "vitest";
import { runCaptured } from "../support/captured.ts";
import { gate } from "../support/gate.ts";

const answer = (status: number): Outcome => ({ status, headers: [], body: new Uint8Array() });
const down = () => Promise.reject(new StoreFailure("unavailable", "down"));

function world(reconcile?: Reconcile) {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const worker = async () => {
    const own = Object.create(store) as MemoryStore;
    const once = createOncekey({ store: own, clock: time.clock, leaseMs: 1_000, onError: () => {} });
    const operation = once.capture({
      name: "refunds.create",
      version: 1,
      maxDurationMs: 4_000,
      onStoreDown: "run",
      ...(reconcile && { reconcile }),
    });
    await once.start();
    const run = (handler: () => Promise<Outcome>, waitMs = 0) => runCaptured(operation, { handler, waitMs });
    return { store: own, run };
  };
  return { time, worker };
}

describe('with onStoreDown "run"', () => {
  it("a duplicate that saw the first request running does not run beside it when the store goes down", async () => {
    const { time, worker } = world();
    const [first, second] = [await worker(), await worker()];
    const working = gate();
    const handler = vi.fn(async () => {
      await working.promise;
      return answer(201);
    });
    const running = first.run(handler);
    await time.advance(10);
    const duplicate = second.run(handler, 5_000);
    await time.advance(100);
    second.store.read = down;
    await time.advance(1_000);
    working.open();
    await time.advanceUntil(Promise.all([running, duplicate]));
    expect(handler).toHaveBeenCalledTimes(1);
  });

  it("what is known to have happened is not run again because it could not be recorded", async () => {
    const { time, worker } = world(async () => happened(ok({})));
    const w = await worker();
    const handler = vi.fn(async () => answer(500));
    expect((await time.advanceUntil(w.run(handler))).kind).toBe("provisional");
    w.store.complete = down;
    await time.advanceUntil(w.run(handler));
    expect(handler).toHaveBeenCalledTimes(1);
  });
});
