import assert from "node:assert/strict";
import type { NewEntry } from "../core/entry.ts";
import type { Store, SweepTarget, TakenEntry } from "../core/store.ts";
import {
  assertBytes,
  claimed,
  completionOf,
  finished,
  hexId,
  hexIds,
  LEASE_MS,
  LIMITS,
  markOf,
  newFence,
  readEntry,
  recordOf,
  released,
  type StoreCase,
  stateOf,
  whileOpen,
} from "./store-harness.ts";

const group = "sweeping";

const TARGET = { operation: "suite.swept", runKind: "phases", operationVersion: 2 } as const;
const CAPTURED = { ...TARGET, runKind: "capture" } as const;

const take = (store: Store, target: SweepTarget = TARGET, limit = 10): Promise<TakenEntry[]> =>
  store.takeDue(target, limit, LEASE_MS);

/** Claims an entry, marks it, and lets its lease run out. */
async function marked(store: Store, entry: Partial<NewEntry>, times: { sweepInMs: number | null }, leaseMs = 1_000) {
  const { id, fence } = await claimed(store, { ...TARGET, ...entry }, leaseMs);
  assert.equal(await store.markUnknown(id, fence, markOf(times)), true);
  return await readEntry(store, id);
}

/** What a duration read back may be short by: the time that the statements took. */
function assertAbout(actual: number | null, expected: number): void {
  assert.ok(actual !== null && actual <= expected && actual > expected - 60_000, `${actual} is not about ${expected}`);
}

export const sweeping: readonly StoreCase[] = [
  {
    group,
    name: "entries whose lease lapsed are taken over, the oldest up to the limit, each under a fence of its own",
    async run({ store, advance }) {
      const oldest = await claimed(store, { ...TARGET, operationVersion: 1 });
      await advance(1_000);
      const middle = await claimed(store, TARGET);
      await advance(1_000);
      const newest = await claimed(store, TARGET);
      assert.deepEqual(await take(store), []);
      await advance(LEASE_MS + 5_000);
      const running = await claimed(store, TARGET);
      const first = await take(store, TARGET, 2);
      assert.deepEqual(hexIds(first), hexIds([oldest, middle]));
      const all = [...first, ...(await take(store))];
      assert.deepEqual(hexIds(all), hexIds([oldest, middle, newest]));
      const fences = [oldest, middle, newest, ...all].map(({ fence }) => Buffer.from(fence).toString("hex"));
      assert.equal(new Set(fences).size, 6);
      assert.equal(stateOf(await readEntry(store, running.id)), stateOf(running));
    },
  },
  {
    group,
    name: "a taken entry comes as it is now, with the state it was taken from and how long its owner is gone",
    async run({ store, advance }) {
      const entry = await claimed(store, TARGET);
      await advance(LEASE_MS + 90_000);
      const [taken] = await take(store);
      assert.ok(taken?.entry);
      assert.equal(hexId(taken), hexId(entry));
      assert.equal(taken.operation, TARGET.operation);
      assert.equal(taken.from, "in_progress");
      assert.ok(taken.idleMs >= 90_000 && taken.idleMs < 150_000, `idle for ${taken.idleMs} ms`);
      assert.equal(taken.settlesInMs, null);
      assertBytes(taken.entry.fence, taken.fence);
      assert.equal(taken.entry.attempt, 2);
      assertAbout(taken.entry.clock.claimableInMs, LEASE_MS);
      assert.equal(stateOf(await readEntry(store, entry.id)), stateOf(taken.entry));
    },
  },
  {
    group,
    name: "what was taken is not taken again before its lease lapses, and its owner before can commit nothing more",
    async run({ store, advance }) {
      const { id, fence } = await claimed(store, TARGET);
      await advance(LEASE_MS);
      const [taken] = await take(store);
      assert.ok(taken);
      assert.deepEqual(await take(store), []);
      assert.equal(await store.complete(id, fence, completionOf()), false);
      await advance(LEASE_MS);
      const [again] = await take(store);
      assert.equal(again?.entry?.attempt, 3);
      assert.equal(await store.complete(id, taken.fence, completionOf()), false);
      assert.equal(await store.complete(id, again?.fence ?? newFence(), completionOf()), true);
    },
  },
  {
    group,
    name: "entries of other operations and kinds, and of newer versions, are left alone",
    async run({ store, advance }) {
      await claimed(store, { ...TARGET, operationVersion: 3 });
      await claimed(store, { ...TARGET, operation: "suite.other" });
      await claimed(store, CAPTURED);
      await marked(store, { operationVersion: 3 }, { sweepInMs: 0 });
      await marked(store, { operation: "suite.other" }, { sweepInMs: 0 });
      await advance(LEASE_MS);
      assert.deepEqual(await take(store), []);
    },
  },
  {
    group,
    name: "without a stored input a phases entry is never taken, and stands in nobody's way",
    async run({ store, advance }) {
      await claimed(store, { ...TARGET, input: null });
      await marked(store, { input: null }, { sweepInMs: 0 });
      await advance(1_000);
      const resumable = await claimed(store, TARGET);
      await advance(LEASE_MS);
      assert.deepEqual(hexIds(await take(store, TARGET, 1)), hexIds([resumable]));
    },
  },
  {
    group,
    name: "finished, released and suspended entries, and those that nobody comes back to by itself, are not taken",
    async run({ store, advance }) {
      const operationOf = (entry: { operation: string }) => ({ ...TARGET, operation: entry.operation });
      const { id, fence } = await claimed(store, TARGET);
      await store.suspend(id, fence, LEASE_MS * 3);
      await marked(store, {}, { sweepInMs: null });
      const others = [await finished(store), await released(store)];
      await advance(LEASE_MS * 2);
      assert.deepEqual(await take(store), []);
      for (const other of others) assert.deepEqual(await take(store, operationOf(other)), []);
      await advance(LEASE_MS);
      assert.deepEqual(hexIds(await take(store)), hexIds([{ id }]));
    },
  },
  {
    group,
    name: "an entry that needs recovery is taken once its time has come, not sooner",
    async run({ store, advance }) {
      const captured = await marked(store, { runKind: "capture" }, { sweepInMs: 60_000 });
      const phases = await marked(store, {}, { sweepInMs: 120_000 });
      assertAbout(captured.clock.sweepInMs, 60_000);
      await advance(59_000);
      for (const target of [TARGET, CAPTURED]) assert.deepEqual(await take(store, target), []);
      await advance(1_000);
      assert.deepEqual(hexIds(await take(store, CAPTURED)), hexIds([captured]));
      assert.deepEqual(await take(store), []);
      await advance(60_000);
      const [taken] = await take(store);
      assert.equal(taken?.from, "needs_recovery");
      assert.deepEqual(hexIds([taken as TakenEntry]), hexIds([phases]));
      assert.equal(taken?.entry?.state, "in_progress");
    },
  },
  {
    group,
    name: "while its last lease runs, an entry that needs recovery is not taken: a slow owner may still complete it",
    async run({ store, advance }) {
      const { id, fence } = await marked(store, {}, { sweepInMs: 0 }, LEASE_MS);
      assert.deepEqual(await take(store), []);
      await advance(LEASE_MS);
      assert.deepEqual(hexIds(await take(store)), hexIds([{ id }]));
      assert.equal(await store.complete(id, fence, completionOf()), false);
    },
  },
  {
    group,
    name: "an entry settles its quiet time after the end of its last lease, whenever it was marked",
    async run({ store, advance }) {
      const early = await claimed(store, TARGET);
      await store.markUnknown(early.id, early.fence, markOf({ quietMs: 100_000 }));
      assertAbout((await readEntry(store, early.id)).clock.settlesInMs, LEASE_MS + 100_000);
      const late = await claimed(store, TARGET);
      const untold = await claimed(store, TARGET);
      await advance(LEASE_MS + 80_000);
      await store.markUnknown(late.id, late.fence, markOf({ quietMs: 100_000 }));
      await store.markUnknown(untold.id, untold.fence, markOf({ quietMs: null }));
      for (const { id } of [early, late]) assertAbout((await readEntry(store, id)).clock.settlesInMs, 20_000);
      assert.equal((await readEntry(store, untold.id)).clock.settlesInMs, null);
    },
  },
  {
    group,
    name: "a takeover and a completion end both waits of an entry",
    async run({ store, advance }) {
      const entry = await claimed(store, TARGET, 1_000);
      await store.markUnknown(entry.id, entry.fence, markOf({ sweepInMs: 0, quietMs: 0 }));
      await advance(1_000);
      const [taken] = await take(store);
      assert.ok(taken?.entry);
      assert.ok(taken.settlesInMs !== null && taken.settlesInMs <= 0, "what was known before is told once more");
      const { sweepInMs, settlesInMs } = taken.entry.clock;
      assert.deepEqual([sweepInMs, settlesInMs], [null, null]);
      await store.markUnknown(taken.id, taken.fence, markOf({ sweepInMs: 0, quietMs: 0 }));
      assert.equal(await store.complete(taken.id, taken.fence, completionOf()), true);
      const { clock } = await readEntry(store, entry.id);
      assert.deepEqual([clock.sweepInMs, clock.settlesInMs], [null, null]);
    },
  },
  {
    group,
    name: "captured entries whose lease lapsed are marked up to the limit and keep their fence",
    async run({ store, advance }) {
      const mark = { reason: "owner_lost", sweepInMs: 30_000, quietMs: 50_000 };
      const lapsed = [await claimed(store, CAPTURED), await claimed(store, CAPTURED)] as const;
      const others = [await claimed(store, TARGET), await claimed(store, { ...CAPTURED, operationVersion: 3 })];
      assert.equal(await store.markLapsed(CAPTURED, mark, 10), 0);
      await advance(LEASE_MS);
      others.push(await claimed(store, CAPTURED));
      assert.equal(await store.markLapsed(CAPTURED, mark, 1), 1);
      assert.equal(await store.markLapsed(CAPTURED, mark, 10), 1);
      assert.equal(await store.markLapsed(CAPTURED, mark, 10), 0);
      for (const { id, fence } of lapsed) {
        const entry = await readEntry(store, id);
        assert.deepEqual([entry.state, entry.reason, entry.outcome], ["needs_recovery", "owner_lost", null]);
        assertBytes(entry.fence, fence);
        assertAbout(entry.clock.sweepInMs, 30_000);
        assertAbout(entry.clock.settlesInMs, 50_000);
      }
      for (const { id } of others) assert.equal((await readEntry(store, id)).state, "in_progress");
      assert.equal(await store.complete(lapsed[0].id, lapsed[0].fence, completionOf()), true);
    },
  },
  {
    group,
    name: "a target of phases marks nothing, and one of captured runs takes nothing that is in progress",
    async run({ store, advance }) {
      const entries = [await claimed(store, TARGET), await claimed(store, CAPTURED)];
      await advance(LEASE_MS);
      assert.equal(await store.markLapsed(TARGET, { reason: "why", sweepInMs: 0, quietMs: 0 }, 10), 0);
      assert.deepEqual(await take(store, CAPTURED), []);
      for (const { id, fence } of entries) {
        const entry = await readEntry(store, id);
        assert.deepEqual([entry.state, entry.attempt], ["in_progress", 1]);
        assertBytes(entry.fence, fence);
      }
    },
  },
  {
    group,
    name: "entries that an open transaction holds are skipped, without waiting for it",
    async run({ store, advance }) {
      const held = await claimed(store, TARGET);
      const free = await claimed(store, TARGET);
      await advance(LEASE_MS);
      const record = async (session: Parameters<Parameters<Store["transaction"]>[0]>[0]) => {
        await session.enter(held.id, held.fence, LIMITS);
        return await session.recordPhase(held.id, held.fence, recordOf(0, "made"));
      };
      await whileOpen(store, record, async ({ result, rollBack }) => {
        assert.equal(result, true);
        assert.deepEqual(hexIds(await take(store)), hexIds([free]));
        await rollBack();
      });
      assert.deepEqual(hexIds(await take(store)), hexIds([held]));
    },
  },
  {
    group,
    name: "sweepers that race for entries share them out: each is taken once",
    async run({ store, advance }) {
      const entries = await Promise.all(Array.from({ length: 20 }, () => claimed(store, TARGET)));
      await advance(LEASE_MS);
      const racing = await Promise.all(Array.from({ length: 8 }, () => take(store, TARGET, 5)));
      const taken = [...racing.flat(), ...(await take(store, TARGET, 20))];
      assert.deepEqual(hexIds(taken), hexIds(entries));
      for (const { id, entry } of taken) assert.equal((await readEntry(store, id)).attempt, entry?.attempt);
    },
  },
  {
    group,
    name: "targets that a sweeper announces are noted once each, however often",
    async run({ store, announced }) {
      assert.deepEqual(await announced(), []);
      await store.announce([TARGET, CAPTURED]);
      await store.announce([TARGET, { ...TARGET, operationVersion: 3 }]);
      await store.announce([]);
      const expected = [TARGET, CAPTURED, { ...TARGET, operationVersion: 3 }];
      const text = (targets: readonly SweepTarget[]) =>
        targets.map((target) => `${target.operation} ${target.runKind} ${target.operationVersion}`).toSorted();
      assert.deepEqual(text(await announced()), text(expected));
    },
  },
];
