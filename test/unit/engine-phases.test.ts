import { describe, expect, it } from "vitest";
import { chargesWorld, LEASE_MS } from "../support/charges.ts";
import { gate } from "../support/gate.ts";
import { provider } from "../support/provider.ts";

const never = () => new Promise<void>(() => {});

describe("a phases operation", () => {
  it("runs its phases, makes its call once, and replays the answer", async () => {
    const { worker, store, psp } = chargesWorld();
    const a = await worker();
    expect((await a.run("k")).kind).toBe("completed");
    expect((await a.run("k")).kind).toBe("replayed");
    expect(store.rows("charge")).toHaveLength(1);
    expect(store.rows("settled")).toHaveLength(1);
    expect(psp.landed).toHaveLength(1);
  });

  it("resumes after a throw from its last recovery point, with the recorded values", async () => {
    const world = chargesWorld({
      at: (place, attempt) => {
        if (place === "before_call" && attempt === 1) throw new Error("boom");
      },
    });
    const a = await world.worker();
    await expect(a.run("k")).rejects.toThrow("boom");
    expect((await a.run("k")).kind).toBe("completed");
    expect(world.store.rows("charge")).toHaveLength(1);
  });

  it("refuses another payload after a throw, at every recovery point (V15)", async () => {
    for (const broken of ["before_call", "before_complete"]) {
      const world = chargesWorld({
        at: (place, attempt) => {
          if (place === broken && attempt === 1) throw new Error("boom");
        },
      });
      const a = await world.worker();
      await expect(a.run("k", 5)).rejects.toThrow("boom");
      expect((await a.run("k", 6)).kind).toBe("mismatch");
      expect((await a.run("k", 5)).kind).toBe("completed");
      expect(world.psp.landed).toHaveLength(1);
    }
  });

  it("lets a zombie commit nothing after another worker took over", async () => {
    const stopped = gate();
    const world = chargesWorld();
    const zombie = await world.worker({ at: (place) => (place === "in_phase" ? stopped.promise : undefined) });
    const late = zombie.run("k");
    await world.time.advance(10);
    // A paused process renews nothing; on the shared clock its deadline passes and a successor takes over.
    await world.time.advance(0);
    zombie.once.internals.context.store.renew = async () => {
      throw new Error("paused");
    };
    await world.time.advance(LEASE_MS + 10);
    const b = await world.worker();
    expect((await world.time.advanceUntil(b.run("k"))).kind).toBe("completed");
    stopped.open();
    expect((await world.time.advanceUntil(late)).kind).toBe("lease_lost");
    expect(world.store.rows("charge")).toHaveLength(1);
    expect(world.psp.landed).toHaveLength(1);
  });

  it("ends a hung operation at maxDurationMs, so that its key is not busy for ever (Q1)", async () => {
    const world = chargesWorld({ maxDurationMs: 5_000 });
    const hung = await world.worker({ at: (place) => (place === "before_call" ? never() : undefined) });
    const first = world.time.advanceUntil(hung.run("k"));
    expect((await first).kind).toBe("lease_lost");
    await world.time.advance(LEASE_MS);
    const b = await world.worker();
    expect((await b.run("k")).kind).toBe("completed");
  });

  it("ends quietly where the work of a lost lease fails much later", async () => {
    for (const place of ["in_phase", "sending", "before_complete"]) {
      const fail = gate();
      const world = chargesWorld({ maxDurationMs: 2_000, timeoutMs: 60_000 });
      const hung = await world.worker({
        at: async (here) => {
          if (here !== place) return;
          await fail.promise;
          throw new Error("late");
        },
      });
      expect((await world.time.advanceUntil(hung.run("k"))).kind).toBe("lease_lost");
      // An unhandled rejection here would end the process, and with it every other request; the runner fails on one.
      fail.open();
      await world.time.advance(10);
    }
  });

  it("survives a database that blinks during renewals, and loses the lease when it stays away", async () => {
    const finish = gate();
    const world = chargesWorld();
    const a = await world.worker({ at: (place) => (place === "before_call" ? finish.promise : undefined) });
    const { store } = a.once.internals.context;
    const renew = store.renew.bind(store);
    let failures = 1;
    store.renew = async (...args) => {
      if (failures-- > 0) throw new Error("blink");
      return renew(...args);
    };
    const running = a.run("k");
    await world.time.advance(LEASE_MS * 3);
    finish.open();
    expect((await world.time.advanceUntil(running)).kind).toBe("completed");
  });

  it("sends the code whose phases no longer fit to needs_recovery, with the reason", async () => {
    const world = chargesWorld();
    const a = await world.worker({
      at: (place) => {
        if (place === "before_call") throw new Error("boom");
      },
    });
    await expect(a.run("k")).rejects.toThrow("boom");
    const b = await world.worker();
    const { definition } = b.charges;
    (definition as unknown as { run: unknown }).run = async (op: {
      phase: (n: string, f: () => Promise<unknown>) => unknown;
    }) => {
      await op.phase("renamed", async () => 1);
    };
    expect(await b.run("k")).toMatchObject({ kind: "unknown", reason: expect.stringContaining("phase_changed") });
  });

  it("gives back the recorded clock and UUIDs on resume", async () => {
    const seen: unknown[] = [];
    const world = chargesWorld();
    const a = await world.worker();
    (a.charges.definition as unknown as { run: unknown }).run = async (op: {
      now(): Date;
      uuid(n: string): string;
      phase(n: string, f: () => Promise<unknown>): Promise<unknown>;
    }) => {
      seen.push([op.now().toISOString(), op.uuid("a"), op.uuid("b")]);
      await op.phase("one", async () => 1);
      throw new Error("boom");
    };
    await expect(a.run("k")).rejects.toThrow("boom");
    await world.time.advance(5_000);
    await expect(a.run("k")).rejects.toThrow("boom");
    expect(seen).toHaveLength(2);
    expect(seen[1]).toEqual(seen[0]);
    const [, first, second] = seen[0] as string[];
    expect(first).not.toBe(second);
  });
});

describe("the sweeper", () => {
  it("finishes a charge whose worker died and whose client never returns", async () => {
    const world = chargesWorld({ psp: provider({ dedupes: true }) });
    const dying = await world.worker({ at: (place) => (place === "before_complete" ? never() : undefined) });
    dying.once.internals.context.store.renew = async () => {
      throw new Error("dead");
    };
    void dying.run("k").catch(() => {});
    await world.time.advance(LEASE_MS + 10);
    const b = await world.worker();
    expect(await world.time.advanceUntil(b.sweeper.runOnce())).toMatchObject({ resumed: 1, failed: 0 });
    expect((await b.run("k")).kind).toBe("replayed");
    expect(world.psp.landed).toHaveLength(1);
    expect(world.store.rows("charge")).toHaveLength(1);
  });

  it("leaves entries of a newer version alone during a rollout (Q3)", async () => {
    const world = chargesWorld();
    const newer = await world.worker({ version: 2, at: (place) => (place === "before_call" ? never() : undefined) });
    newer.once.internals.context.store.renew = async () => {
      throw new Error("dead");
    };
    void newer.run("k").catch(() => {});
    await world.time.advance(LEASE_MS + 10);
    const older = await world.worker({ version: 1 });
    expect(await world.time.advanceUntil(older.sweeper.runOnce())).toMatchObject({ resumed: 0, gaveUp: 0, marked: 0 });
    expect(await older.run("k")).toMatchObject({ kind: "unknown" });
    expect(await world.entry()).toMatchObject({ state: "in_progress", attempt: 1 });
  });

  it("purges expired outcomes, never unresolved entries", async () => {
    const world = chargesWorld({ once: { retentionMs: 10_000, clientRetryWindowMs: 5_000 } });
    const a = await world.worker();
    await a.run("done");
    world.psp.script.push("fail", "fail", "fail");
    expect((await world.time.advanceUntil(a.run("open"))).kind).toBe("unknown");
    await world.time.advance(20_000);
    expect((await world.time.advanceUntil(a.sweeper.runOnce())).purged).toBe(1);
    expect((await world.time.advanceUntil(a.run("open"))).kind).not.toBe("mismatch");
    expect((await world.time.advanceUntil(a.run("done"))).kind).toBe("completed");
  });
});
