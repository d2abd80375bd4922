import assert from "node:assert/strict";
import type { Session } from "../core/store.ts";
import {
  assertBytes,
  claimed,
  finished,
  LEASE_MS,
  newEntry,
  newFence,
  readEntry,
  recordOf,
  released,
  type StoreCase,
  seen,
  stateOf,
  unknown,
  whileOpen,
} from "./store-harness.ts";

const group = "lease and takeover";

/** Who owns an entry, for how long, and who may own it next. */
export const ownership: readonly StoreCase[] = [
  {
    group,
    name: "a lease lapses when its time is over",
    async run({ store, advance }) {
      const { id } = await claimed(store);
      await advance(LEASE_MS);
      const { clock, state } = await readEntry(store, id);
      assert.equal(state, "in_progress");
      assert.ok(clock.claimableInMs <= 0);
      assert.ok(clock.ageMs >= LEASE_MS);
    },
  },
  {
    group,
    name: "a lapsed entry is taken over with a new fence, and all else that was claimed stays",
    async run({ store, advance }) {
      const first = await claimed(store, { context: new Uint8Array([1, 2, 3]) });
      await store.recordCall(first.id, first.fence, recordOf(0, "authorize", "call"));
      await advance(LEASE_MS);
      const before = await readEntry(store, first.id);
      const fence = newFence();
      const taken = await store.takeOver(first.id, seen(before), fence, LEASE_MS);
      assert.ok(taken);
      assert.equal(taken.attempt, 2);
      assertBytes(taken.fence, fence);
      assert.ok(taken.clock.claimableInMs > LEASE_MS / 2);
      assert.equal(stateOf(taken), stateOf({ ...before, attempt: 2, fence }));
      assert.equal(stateOf(await readEntry(store, first.id)), stateOf(taken));
    },
  },
  {
    group,
    name: "of 10 concurrent takers exactly one gets the entry",
    async run({ store, advance }) {
      const { id } = await claimed(store);
      await advance(LEASE_MS);
      const before = seen(await readEntry(store, id));
      const takers = Array.from({ length: 10 }, () => store.takeOver(id, before, newFence(), LEASE_MS));
      const taken = (await Promise.all(takers)).filter((entry) => entry !== null);
      assert.equal(taken.length, 1);
      assert.equal(taken[0]?.attempt, 2);
      assertBytes((await readEntry(store, id)).fence, taken[0]?.fence ?? null);
    },
  },
  {
    group,
    name: "a claim does not wait for a transaction that only holds the entry: it is there",
    async run({ store }) {
      const { id, fence } = await claimed(store);
      const holding = async ({ tx }: Session<unknown>) => assert.equal(await store.owns(tx, id, fence), true);
      await whileOpen(store, holding, async () => assert.equal(await store.claim(newEntry({ id }), LEASE_MS), null));
    },
  },
  {
    group,
    name: "an entry whose lease has not lapsed is not taken over",
    async run({ store, advance }) {
      const { id, ...entry } = await claimed(store);
      await advance(LEASE_MS / 2);
      assert.equal(await store.takeOver(id, seen({ id, ...entry }), newFence(), LEASE_MS), null);
      assert.equal(await store.renew(id, entry.fence, LEASE_MS), true);
    },
  },
  {
    group,
    name: "a taker that saw another fence or attempt gets nothing",
    async run({ store, advance }) {
      const { id } = await claimed(store);
      await advance(LEASE_MS);
      const before = seen(await readEntry(store, id));
      assert.equal(await store.takeOver(id, { ...before, fence: newFence() }, newFence(), LEASE_MS), null);
      assert.equal(await store.takeOver(id, { ...before, attempt: 2 }, newFence(), LEASE_MS), null);
      assert.ok(await store.takeOver(id, before, newFence(), LEASE_MS));
      assert.equal(await store.takeOver(id, before, newFence(), LEASE_MS), null);
    },
  },
  {
    group,
    name: "a takeover sent again with the same fence is the same takeover",
    async run({ store, advance }) {
      const { id } = await claimed(store);
      await advance(LEASE_MS);
      const before = seen(await readEntry(store, id));
      const fence = newFence();
      assert.ok(await store.takeOver(id, before, fence, LEASE_MS));
      const again = await store.takeOver(id, before, fence, LEASE_MS);
      assertBytes(again?.fence, fence);
      assert.equal(again?.attempt, 2);
    },
  },
  {
    group,
    name: "a finished entry is never taken over",
    async run({ store, advance }) {
      const { id, fence } = await finished(store);
      await advance(LEASE_MS);
      for (const state of ["in_progress", "released", "needs_recovery"] as const) {
        assert.equal(await store.takeOver(id, { fence, attempt: 1, state }, newFence(), LEASE_MS), null);
      }
      assert.equal((await readEntry(store, id)).state, "succeeded");
    },
  },
  {
    group,
    name: "an entry that needs recovery is taken over only by who saw it so, at once, and by one of them",
    async run({ store }) {
      const entry = await unknown(store);
      const unaware = { ...seen(entry), state: "in_progress" } as const;
      assert.equal(await store.takeOver(entry.id, unaware, newFence(), LEASE_MS), null);
      const takers = Array.from({ length: 5 }, () => store.takeOver(entry.id, seen(entry), newFence(), LEASE_MS));
      const taken = (await Promise.all(takers)).filter((result) => result !== null);
      assert.equal(taken.length, 1);
      assert.equal(taken[0]?.state, "in_progress");
      assert.equal(taken[0]?.attempt, 2);
    },
  },
  {
    group,
    name: "an entry that needs recovery tells for how long its last lease has been over",
    async run({ store, advance }) {
      const { id, clock } = await unknown(store);
      assert.ok(clock.claimableInMs > 0);
      await advance(LEASE_MS + 60_000);
      assert.ok((await readEntry(store, id)).clock.claimableInMs <= -60_000);
    },
  },
  {
    group,
    name: "the owner extends its lease, also a lapsed one that nobody took",
    async run({ store, advance }) {
      const { id, fence } = await claimed(store);
      await advance(LEASE_MS / 2);
      assert.equal(await store.renew(id, fence, LEASE_MS), true);
      await advance((LEASE_MS * 3) / 4);
      assert.ok((await readEntry(store, id)).clock.claimableInMs > 0);
      await advance(LEASE_MS);
      assert.equal(await store.renew(id, fence, LEASE_MS), true);
      assert.ok((await readEntry(store, id)).clock.claimableInMs > LEASE_MS / 2);
    },
  },
  {
    group,
    name: "a renewal by a stale fence, or of an entry that is not in progress, matches nothing",
    async run({ store, advance }) {
      const { id, fence } = await claimed(store);
      await advance(LEASE_MS);
      assert.ok(await store.takeOver(id, seen(await readEntry(store, id)), newFence(), LEASE_MS));
      assert.equal(await store.renew(id, fence, LEASE_MS), false);
      for (const entry of [await finished(store), await unknown(store), await released(store)]) {
        assert.equal(await store.renew(entry.id, entry.fence, LEASE_MS), false);
      }
    },
  },
  {
    group,
    name: "a suspended entry stays in progress and can be taken over only when the wait is over",
    async run({ store, advance }) {
      const { id, fence } = await claimed(store);
      const waitMs = LEASE_MS * 2;
      assert.equal(await store.suspend(id, fence, waitMs), true);
      const suspended = await readEntry(store, id);
      assert.equal(suspended.state, "in_progress");
      assert.ok(suspended.clock.claimableInMs > LEASE_MS && suspended.clock.claimableInMs <= waitMs);
      await advance(LEASE_MS);
      assert.equal(await store.takeOver(id, seen(suspended), newFence(), LEASE_MS), null);
      await advance(LEASE_MS);
      assert.ok(await store.takeOver(id, seen(suspended), newFence(), LEASE_MS));
    },
  },
  {
    group,
    name: "a suspension shorter than the lease lets the next owner in sooner",
    async run({ store, advance }) {
      const { id, fence } = await claimed(store);
      assert.equal(await store.suspend(id, fence, 1_000), true);
      assert.ok((await readEntry(store, id)).clock.claimableInMs <= 1_000);
      await advance(1_000);
      const taken = await store.takeOver(id, seen(await readEntry(store, id)), newFence(), LEASE_MS);
      assert.ok(taken && taken.clock.claimableInMs > LEASE_MS / 2);
    },
  },
  {
    group,
    name: "a suspension by a fence that does not own the entry matches nothing",
    async run({ store }) {
      const { id } = await claimed(store);
      assert.equal(await store.suspend(id, newFence(), 0), false);
      assert.ok((await readEntry(store, id)).clock.claimableInMs > 0);
      const done = await finished(store);
      assert.equal(await store.suspend(done.id, done.fence, 0), false);
    },
  },
];
