import { created, createOncekey, type OncekeyOptions, type Recover } from "oncekey";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { createSweeper } from "oncekey/sweeper";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { encodeContent } from "../../src/core/stored-outcome.ts";
import { chargesWorld, kill, LEASE_MS, sweepFor } from "../support/charges.ts";
import { gate } from "../support/gate.ts";
import { provider } from "../support/provider.ts";

const MINUTE = 60_000;
const scope = { tenant: "acme", client: null };
const never = () => new Promise<void>(() => {});

function orders() {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const instance = (options: Partial<OncekeyOptions<MemoryTransaction>> = {}) =>
    createOncekey({
      store: Object.create(store) as MemoryStore,
      clock: time.clock,
      leaseMs: LEASE_MS,
      waitMs: 0,
      retentionMs: 10_000,
      clientRetryWindowMs: 0,
      onError: () => {},
      ...options,
    });
  return { time, store, instance };
}

const phasesOf = (once: ReturnType<ReturnType<typeof orders>["instance"]>, at: () => Promise<void> | void = () => {}) =>
  once.phases({
    name: "orders.create",
    version: 1,
    maxDurationMs: 600_000,
    async run(op) {
      await at();
      return op.complete(async ({ tx }) => {
        await tx.insert("order", { by: "phases" });
        return created("/orders/1", { by: "phases" });
      });
    },
  });

describe("schedules that broke an earlier draft", () => {
  it("V14: an operator cannot call a charge failed while it may still land, though the provider dedupes", async () => {
    const recover: Recover<{ amount: number }, { id: string }> = {
      dedupes: { forMs: 24 * 3_600_000 },
      settlesWithinMs: 5 * MINUTE,
    };
    const world = chargesWorld({ psp: provider({ dedupes: true }), recover: () => recover, maxAttempts: 1 });
    world.psp.script.push("late", "fail", "fail");
    const worker = await world.worker();
    await world.time.advanceUntil(worker.run("k"));
    const outcome = { status: 402, content: encodeContent({ headers: [], body: new Uint8Array() }), pointer: null };
    const completion = { state: "failed", outcome, retentionMs: MINUTE, tombstoneMs: 0 } as const;
    const decide = (fence: number) =>
      world.store.resolve(world.id(), {
        verdict: "failed",
        completion,
        attempt: null,
        force: false,
        by: "ada",
        note: null,
        fence: new Uint8Array(16).fill(fence),
      });
    await world.time.advance(4 * MINUTE);
    expect(await decide(1)).toMatchObject({ kind: "unsettled", openIntents: [{ form: "dedupes", state: "open" }] });
    world.psp.land();
    await sweepFor(world, worker, 2 * MINUTE);
    expect(await decide(2)).toMatchObject({ kind: "finished", state: "succeeded" });
    expect(world.psp.landed).toHaveLength(1);
  });

  it("V19: a transaction that sleeps past another code's outcome and its purge inserts nothing", async () => {
    const { time, store, instance } = orders();
    const wake = gate();
    const old = instance();
    const slow = old.transaction({
      name: "orders.create",
      version: 1,
      maxDurationMs: 2_000,
      async run({ tx }) {
        await wake.promise;
        await tx.insert("order", { by: "transaction" });
        return created("/orders/1", { by: "transaction" });
      },
    });
    await old.start();
    const sleeping = old.run(slow, { scope, key: "k", input: {} });
    const next = instance();
    const claiming = phasesOf(next);
    await next.start();
    expect((await time.advanceUntil(next.run(claiming, { scope, key: "k", input: {} }))).kind).toBe("completed");
    await time.advance(10_001);
    await createSweeper(next).runOnce();
    wake.open();
    expect(await time.advanceUntil(sleeping)).toMatchObject({ kind: "replayed" });
    expect(store.rows("order")).toEqual([{ by: "phases" }]);
    // The rule that makes it so: no transaction may live as long as an outcome.
    const unsound = instance();
    unsound.transaction({ name: "a", version: 1, maxDurationMs: 10_000, run: async () => created("/", {}) });
    await expect(unsound.start()).rejects.toThrow(/must be longer than maxDurationMs/);
  });

  it("V20: a retry after the purge is refused while a tombstone stands, and no waiter may outlive the outcome", async () => {
    const { time, store, instance } = orders();
    const once = instance({ tombstoneMs: 50_000 });
    const operation = phasesOf(once);
    await once.start();
    const run = () => time.advanceUntil(once.run(operation, { scope, key: "k", input: {} }));
    expect((await run()).kind).toBe("completed");
    await time.advance(10_001);
    expect(await createSweeper(once).runOnce()).toMatchObject({ purged: 1 });
    expect((await run()).kind).toBe("gone");
    expect(store.rows("order")).toHaveLength(1);
    await time.advance(50_000);
    expect((await run()).kind).toBe("completed");
    await expect(instance({ waitMs: 5_001 }).start()).rejects.toThrow(/a waiter must not outlive the outcome/);
  });

  it("Q3: what phases code left is neither run, nor judged, nor hidden where only transaction code is left", async () => {
    const { time, store, instance } = orders();
    const newer = instance();
    const left = phasesOf(newer, never);
    newer.internals.context.store.renew = () => Promise.reject(new Error("dead"));
    await newer.start();
    void newer.run(left, { scope, key: "k", input: {} }).catch(() => {});
    await time.advance(LEASE_MS + 10);
    const rolledBack = instance();
    const operation = rolledBack.transaction({
      name: "orders.create",
      version: 1,
      maxDurationMs: 1_000,
      run: async () => created("/orders/1", {}),
    });
    await rolledBack.start();
    const result = await time.advanceUntil(rolledBack.run(operation, { scope, key: "k", input: {} }));
    expect(result).toMatchObject({ kind: "unknown", state: "in_progress", reason: "left by phases code" });
    expect(await createSweeper(rolledBack).runOnce()).toMatchObject({ resumed: 0, marked: 0, gaveUp: 0 });
    // It announces nothing that could take it: that is how operators see it.
    expect(store.announced()).toEqual([]);
    const back = instance();
    phasesOf(back);
    await back.start();
    expect(await time.advanceUntil(createSweeper(back).runOnce())).toMatchObject({ resumed: 1 });
  });

  it("Q4: a provider that replays its own 500 under the key for ever ends in needs_recovery", async () => {
    const world = chargesWorld({ psp: provider({ dedupes: true }) });
    world.psp.script.push(...Array.from({ length: 18 }, () => "fail" as const));
    const worker = await world.worker();
    await world.time.advanceUntil(worker.run("k"));
    await sweepFor(world, worker, 40_000);
    expect(world.psp.sent).toHaveLength(18);
    expect(await world.entry()).toMatchObject({ state: "needs_recovery", attempt: 6 });
  });
});

describe("an open intent of another form", () => {
  const dedupes = () => ({ dedupes: { forMs: 3_600_000 } });
  it("stops code of the same version, which has no other way to notice", async () => {
    const world = chargesWorld({ recover: dedupes });
    world.psp.script.push("late", "fail", "fail");
    const before = await world.worker();
    await world.time.advanceUntil(before.run("k"));
    await world.time.advance(2_000);
    const after = await world.worker({
      recover: (psp) => ({ find: ({ key }) => psp.find(key), cancel: ({ key }) => psp.cancel(key) }),
    });
    expect(await world.time.advanceUntil(after.run("k"))).toMatchObject({
      kind: "unknown",
      state: "needs_recovery",
      reason: "recover_changed: authorize was sent under another form",
    });
    await sweepFor(world, after, 10 * MINUTE, MINUTE);
    expect(await world.entry()).toMatchObject({ state: "needs_recovery" });
    expect(world.psp.sent).toHaveLength(3);
    // The code that sent it, back after a rollback, goes on where it was.
    world.psp.land();
    await sweepFor(world, before, 10 * MINUTE, MINUTE);
    expect(await world.entry()).toMatchObject({ state: "succeeded" });
  });

  it("does not stop the operation's own code after a crash", async () => {
    const world = chargesWorld({ recover: dedupes, psp: provider({ dedupes: true }) });
    world.psp.script.push("late", "fail", "fail");
    const worker = await world.worker();
    await world.time.advanceUntil(worker.run("k"));
    const dying = await world.worker({ at: (place) => (place === "before_complete" ? kill(dying) : undefined) });
    await world.time.advance(2_000);
    void dying.run("k");
    await world.time.advance(LEASE_MS + 10);
    expect((await world.time.advanceUntil(worker.run("k"))).kind).toBe("completed");
    expect(world.psp.landed).toHaveLength(1);
    expect(await world.store.journal(world.id())).toMatchObject({ intents: [{ state: "settled" }] });
  });
});
