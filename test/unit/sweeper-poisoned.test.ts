import { created, createOncekey } from "oncekey";
import { type MemoryStore, memoryStore } from "oncekey/memory";
import { createSweeper } from "oncekey/sweeper";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it, vi } from "vitest";

const LEASE_MS = 1_000;

/** Three entries whose owner died: the inputs of the two oldest cannot be decoded by this release. */
async function world() {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const dead = { yes: true };
  const make = async (own: MemoryStore) => {
    const once = createOncekey({ store: own, clock: time.clock, leaseMs: LEASE_MS, onError: () => {} });
    const operation = once.phases({
      name: "charges.create",
      version: 1,
      async run(op) {
        if (dead.yes) await new Promise(() => {});
        return op.complete(async () => created("/1", {}));
      },
    });
    await once.start();
    return { once, operation };
  };
  const dying = Object.create(store) as MemoryStore;
  dying.renew = () => Promise.reject(new Error("dead"));
  dying.claim = (entry, leaseMs) =>
    store.claim(entry.key.startsWith("bad") ? { ...entry, input: new Uint8Array([255]) } : entry, leaseMs);
  const first = await make(dying);
  const start = async (key: string) => {
    first.once.run(first.operation, { scope: { tenant: "a", client: null }, key, input: {} }).catch(() => {});
    await time.advance(10);
  };
  await start("bad1");
  await start("bad2");
  await start("good");
  await time.advance(LEASE_MS * 2);
  dead.yes = false;
  const alive = await make(Object.create(store) as MemoryStore);
  return { time, store, once: alive.once };
}

describe("entries that this release cannot decode", () => {
  it("do not stand in front of the others for ever", async () => {
    const { time, once } = await world();
    const sweeper = createSweeper(once, { batch: 2 });
    let resumed = 0;
    for (let round = 0; round < 20; round++) {
      resumed += (await time.advanceUntil(sweeper.runOnce())).resumed;
      await time.advance(1_000);
    }
    expect(resumed).toBe(1);
  });

  it("do not make the sweeper spin", async () => {
    const { time, once } = await world();
    const { store } = once.internals.context;
    const { takeDue } = store;
    const stop = new AbortController();
    let rounds = 0;
    store.takeDue = (...asked) => {
      if (++rounds === 50) stop.abort();
      return takeDue(...asked);
    };
    const ended = createSweeper(once, { batch: 2 }).run(stop.signal);
    // No time passes: a sweeper that pauses asks a few times at most.
    await time.advance(0);
    expect(rounds).toBeLessThan(10);
    stop.abort();
    await time.advance(10_000);
    await ended;
  });
});

describe("a sweeper that is told to stop", () => {
  it("ends with the round under way, without one more pause", async () => {
    const time = fakeClock();
    const store = memoryStore({ clock: time.now });
    const once = createOncekey({ store, clock: time.clock });
    await once.start();
    const stop = new AbortController();
    const { purge } = store;
    store.purge = (limit) => {
      stop.abort();
      return purge(limit);
    };
    const ended = vi.fn();
    void createSweeper(once as never, { intervalMs: 600_000 })
      .run(stop.signal)
      .then(ended);
    await time.advance(100);
    expect(ended).toHaveBeenCalled();
  });

  it("leaves no timer behind that keeps the process alive", async () => {
    const time = fakeClock();
    const once = createOncekey({ store: memoryStore({ clock: time.now }), clock: time.clock });
    await once.start();
    const timeouts = () => process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
    const before = timeouts();
    const stop = new AbortController();
    const running = createSweeper(once as never, { intervalMs: 600_000 }).run(stop.signal);
    await time.advance(100);
    stop.abort();
    await running;
    expect(timeouts()).toBeLessThanOrEqual(before);
  });
});
