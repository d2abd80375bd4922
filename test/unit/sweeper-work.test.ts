import { created, createOncekey } from "oncekey";
import { type MemoryStore, memoryStore } from "oncekey/memory";
import { createSweeper, type SweeperOptions } from "oncekey/sweeper";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { gate } from "../support/gate.ts";

const LEASE_MS = 1_000;

type Work = (key: string) => Promise<void> | void;

/** Two operations, `slow` and `fast`, whose entries were all left by a process that died. */
async function abandoned(slow: number, fast: number, aliases: readonly string[] = []) {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const ids = new Map<string, Uint8Array>();
  const instance = async (work: Work, names = ["slow", "fast"]) => {
    const own = Object.create(store) as MemoryStore;
    const once = createOncekey({ store: own, clock: time.clock, leaseMs: LEASE_MS, onError: () => {} });
    const operations = names.map((name) =>
      once.phases({
        name,
        version: 1,
        maxDurationMs: 600_000,
        ...(name === "fast" ? { aliases } : {}),
        async run(op) {
          ids.set(op.key, Buffer.from(op.id, "hex"));
          await work(op.key);
          return op.complete(async ({ tx }) => {
            await tx.insert("done", { key: op.key });
            return created("/1", {});
          });
        },
      }),
    );
    await once.start();
    return { own, once, operations };
  };
  const dying = await instance(() => new Promise<void>(() => {}), ["slow", aliases[0] ?? "fast"]);
  dying.own.renew = () => Promise.reject(new Error("dead"));
  const leave = (index: number, key: string) => {
    const operation = dying.operations[index];
    if (operation === undefined) throw new Error("no such operation");
    void dying.once.run(operation, { scope: { tenant: "a", client: null }, key, input: {} }).catch(() => {});
  };
  for (let n = 0; n < slow; n++) leave(0, `slow${n}`);
  for (let n = 0; n < fast; n++) leave(1, `fast${n}`);
  await time.advance(LEASE_MS + 10);
  const sweeper = async (work: Work, options?: SweeperOptions) => {
    const { own, once } = await instance(work);
    return { own, once, ...createSweeper(once, options) };
  };
  const done = () => store.rows<{ key: string }>("done").map(({ key }) => key);
  return { time, store, sweeper, done, entry: (key: string) => store.read(ids.get(key) ?? new Uint8Array()) };
}

describe("the places of a sweeper", () => {
  it("bound what it takes: no entry waits under a lease for its turn", async () => {
    const { time, sweeper, done } = await abandoned(10, 0);
    const first = gate();
    let running = 0;
    let most = 0;
    const { own, runOnce } = await sweeper(
      async () => {
        most = Math.max(most, ++running);
        await first.promise;
        running--;
      },
      { parallel: 3 },
    );
    const { takeDue } = own;
    let taken = 0;
    own.takeDue = async (...all) => {
      const entries = await takeDue(...all);
      taken += entries.length;
      return entries;
    };
    const round = runOnce();
    await time.advance(50);
    expect({ taken, running }).toEqual({ taken: 3, running: 3 });
    first.open();
    expect(await time.advanceUntil(round)).toMatchObject({ resumed: 10 });
    expect(most).toBe(3);
    expect(done()).toHaveLength(10);
  });

  it("are each operation's own: slow resumes hold up no other, nor marking, nor the purge", async () => {
    const { time, sweeper, done } = await abandoned(8, 8);
    const { own, run } = await sweeper((key) => (key.startsWith("slow") ? new Promise<void>(() => {}) : undefined), {
      graceMs: 100,
    });
    let purges = 0;
    own.purge = async () => purges++ * 0;
    const stop = new AbortController();
    const ended = run(stop.signal);
    await time.advance(20_000);
    expect(done().filter((key) => key.startsWith("fast"))).toHaveLength(8);
    expect(purges).toBeGreaterThan(10);
    stop.abort();
    await time.advanceUntil(ended);
  });

  it("take the entries of a former name as well, in turns", async () => {
    const { time, sweeper, done } = await abandoned(0, 6, ["quick"]);
    const { runOnce } = await sweeper(() => {}, { parallel: 2 });
    expect(await time.advanceUntil(runOnce())).toMatchObject({ resumed: 6 });
    expect(done()).toHaveLength(6);
  });
});

describe("a backlog", () => {
  it("is worked off without a pause for each handful", async () => {
    const { time, sweeper, done } = await abandoned(100, 0);
    const passing = (ms: number) => new Promise<void>((resolve) => void time.clock.after(ms, resolve));
    const work = (key: string) => passing(4 * (Number(key.slice(4)) % 4));
    const { own, run } = await sweeper(work, { parallel: 4, intervalMs: 60_000 });
    // Places are left while the next look is under way.
    const { takeDue } = own;
    own.takeDue = async (...all) => {
      const entries = await takeDue(...all);
      await passing(10);
      return entries;
    };
    const stop = new AbortController();
    const ended = run(stop.signal);
    await time.advance(20_000);
    expect(done()).toHaveLength(100);
    stop.abort();
    await time.advanceUntil(ended);
  });
});

describe("several sweepers", () => {
  it("share the work: each entry is resumed once, under a fence of its own", async () => {
    const { time, sweeper, done } = await abandoned(20, 20);
    const sweepers = await Promise.all([sweeper(() => {}), sweeper(() => {}), sweeper(() => {})]);
    const fences = new Set<string>();
    for (const { own } of sweepers) {
      const { takeDue } = own;
      own.takeDue = async (...all) => {
        const entries = await takeDue(...all);
        for (const { fence } of entries) fences.add(Buffer.from(fence).toString("hex"));
        return entries;
      };
    }
    const reports = await time.advanceUntil(Promise.all(sweepers.map(({ runOnce }) => runOnce())));
    expect(reports.reduce((sum, { resumed }) => sum + resumed, 0)).toBe(40);
    expect(fences.size).toBe(40);
    expect(done().toSorted()).toEqual([...new Set(done())].toSorted());
    expect(done()).toHaveLength(40);
  });
});

describe("a sweeper that stops", () => {
  it("finishes what it holds within its grace", async () => {
    const { time, sweeper, done } = await abandoned(1, 0);
    const finish = gate();
    const { run } = await sweeper(() => finish.promise);
    const stop = new AbortController();
    const ended = run(stop.signal);
    await time.advance(100);
    stop.abort();
    await time.advance(5_000);
    finish.open();
    await time.advanceUntil(ended);
    expect(done()).toEqual(["slow0"]);
  });

  it("gives back what it cannot finish: the next one goes on at once, and the old run commits nothing", async () => {
    const { time, sweeper, done, entry } = await abandoned(1, 0);
    const finish = gate();
    const stopping = await sweeper(() => finish.promise, { graceMs: 200 });
    const stop = new AbortController();
    const ended = stopping.run(stop.signal);
    await time.advance(100);
    stop.abort();
    await time.advanceUntil(ended);
    const given = await entry("slow0");
    expect(given).toMatchObject({ state: "in_progress", attempt: 2 });
    expect(given?.clock.claimableInMs).toBeLessThanOrEqual(0);
    const next = await sweeper(() => {});
    expect(await time.advanceUntil(next.runOnce())).toMatchObject({ resumed: 1 });
    finish.open();
    await time.advance(10);
    expect(done()).toEqual(["slow0"]);
  });

  it("takes nothing more up once its instance is closed, and ends by itself", async () => {
    const { time, sweeper, done } = await abandoned(3, 0);
    const closing = await sweeper(() => {});
    const { takeDue } = closing.own;
    closing.own.takeDue = async (...all) => {
      const entries = await takeDue(...all);
      void closing.once.close();
      return entries;
    };
    await time.advanceUntil(closing.run(new AbortController().signal));
    expect(done()).toEqual([]);
    const next = await sweeper(() => {});
    expect(await time.advanceUntil(next.runOnce())).toMatchObject({ resumed: 3 });
  });
});

describe("an entry that this release cannot read", () => {
  it("is marked with the reason, holds up no other, and is left to a sweeper that can read it", async () => {
    const { time, sweeper, done, entry } = await abandoned(2, 0);
    const { own, runOnce } = await sweeper(() => {}, { parallel: 1 });
    const { takeDue } = own;
    own.takeDue = async (...all) =>
      (await takeDue(...all)).map((one) => (one.entry?.key === "slow0" ? { ...one, entry: null } : one));
    expect(await time.advanceUntil(runOnce())).toMatchObject({ resumed: 1, gaveUp: 1 });
    expect(done()).toEqual(["slow1"]);
    const marked = await entry("slow0");
    expect(marked).toMatchObject({ state: "needs_recovery", reason: expect.stringMatching(/^unreadable: /) });
    expect(marked?.clock.settlesInMs).toBeNull();
    // Not looked at without end, nor left to a person while a newer release is rolled out.
    await time.advance(50_000);
    expect(await time.advanceUntil(runOnce())).toMatchObject({ resumed: 0, gaveUp: 0 });
    await time.advance(20_000);
    expect(await time.advanceUntil(runOnce())).toMatchObject({ resumed: 0, gaveUp: 1 });
    const newer = await sweeper(() => {});
    await time.advance(70_000);
    expect(await time.advanceUntil(newer.runOnce())).toMatchObject({ resumed: 1, gaveUp: 0 });
    expect(done()).toEqual(["slow1", "slow0"]);
  });
});

describe("a sweeper's options and reports", () => {
  it("are refused where they make no sense", async () => {
    const { sweeper } = await abandoned(0, 0);
    for (const options of [
      { parallel: 0 },
      { batch: 1.5 },
      { intervalMs: -1 },
      { purgePauseMs: -1 },
      { graceMs: NaN },
    ]) {
      await expect(sweeper(() => {}, options)).rejects.toMatchObject({ code: "oncekey_config_invalid" });
    }
  });

  it("tell operators which operations it can take up, and what was purged", async () => {
    const { time, store, sweeper } = await abandoned(0, 1);
    const { own, runOnce } = await sweeper(() => {});
    own.purgeDeliveries = async () => 7;
    expect(await time.advanceUntil(runOnce())).toMatchObject({ resumed: 1, purged: 0, purgedDeliveries: 7 });
    expect(
      store
        .announced()
        .map(({ operation }) => operation)
        .toSorted(),
    ).toEqual(["fast", "slow"]);
  });

  it("purges in batches with a pause between them", async () => {
    const { time, sweeper } = await abandoned(0, 0);
    const { own, run } = await sweeper(() => {}, { batch: 10, purgePauseMs: 100 });
    const limits: number[] = [];
    own.purge = async (limit) => {
      limits.push(limit);
      return limit;
    };
    const stop = new AbortController();
    const ended = run(stop.signal);
    await time.advance(10_000);
    stop.abort();
    await time.advanceUntil(ended);
    expect(new Set(limits)).toEqual(new Set([10]));
    expect(limits.length).toBeGreaterThan(70);
    expect(limits.length).toBeLessThan(140);
  });
});
