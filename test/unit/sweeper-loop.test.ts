import { created, createOncekey } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { createSweeper } from "oncekey/sweeper";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it, vi } from "vitest";
import { chargesWorld, LEASE_MS } from "../support/charges.ts";

describe("the sweeper", () => {
  it("finishes what a failure after a recovery point left, though the client never comes back", async () => {
    const { worker, time, store } = chargesWorld();
    const w = await worker({
      at: (place, attempt) => {
        if (place === "in_complete" && attempt === 1) throw new Error("a passing failure");
      },
    });
    await expect(time.advanceUntil(w.run("k"))).rejects.toThrow("a passing failure");
    for (let round = 0; round < 20; round++) {
      await time.advance(LEASE_MS * 10);
      await time.advanceUntil(w.sweeper.runOnce());
    }
    expect(store.rows("settled")).toHaveLength(1);
  });

  it("is not held up by older entries that only a retry can take up", async () => {
    const time = fakeClock();
    const store = memoryStore({ clock: time.now });
    const hang = { yes: true };
    const make = async () => {
      const once = createOncekey({ store, clock: time.clock, leaseMs: LEASE_MS, onError: () => {} });
      const define = (name: string, storeInput: boolean) =>
        once.phases({
          name,
          version: 1,
          storeInput,
          async run(op) {
            if (hang.yes) await new Promise(() => {});
            return op.complete(async () => created("/1", {}));
          },
        });
      const both = { unstored: define("unstored", false), stored: define("stored", true) };
      await once.start();
      return { once, ...both };
    };
    const dying = await make();
    const renew = store.renew;
    store.renew = () => Promise.reject(new Error("dead"));
    const run = (operation: typeof dying.stored, key: string) =>
      void dying.once.run(operation, { scope: { tenant: "a", client: null }, key, input: {} }).catch(() => {});
    run(dying.unstored, "k1");
    run(dying.unstored, "k2");
    await time.advance(10);
    run(dying.stored, "k3");
    await time.advance(LEASE_MS * 2);
    store.renew = renew;
    hang.yes = false;
    const alive = await make();
    const sweeper = createSweeper(alive.once, { batch: 2 });
    let resumed = 0;
    for (let round = 0; round < 5; round++) resumed += (await time.advanceUntil(sweeper.runOnce())).resumed;
    expect(resumed).toBe(1);
  });

  it("survives an onError that throws", async () => {
    const time = fakeClock();
    const store = memoryStore({ clock: time.now });
    const once = createOncekey({
      store,
      clock: time.clock,
      onError: () => {
        throw new Error("the logger is broken");
      },
    });
    await once.start();
    store.purge = () => Promise.reject(new Error("down"));
    const stop = new AbortController();
    const ended = vi.fn();
    createSweeper(once as never)
      .run(stop.signal)
      .then(ended, ended);
    await time.advance(10_000);
    expect(ended).not.toHaveBeenCalled();
    stop.abort();
  });

  it("says so when it is told to run before start(), instead of never running", async () => {
    const once = createOncekey({ store: memoryStore() });
    await expect(createSweeper(once as never).run(new AbortController().signal)).rejects.toMatchObject({
      code: "oncekey_not_started",
    });
  });
});
