import assert from "node:assert/strict";
import {
  assertBytes,
  claimed,
  completionOf,
  finished,
  intentOf,
  LEASE_MS,
  markOf,
  newEntry,
  newFence,
  outcomeOf,
  readEntry,
  recordOf,
  released,
  type StoreCase,
  seen,
  stateOf,
  unknown,
} from "./store-harness.ts";

const group = "release and unknown outcomes";

/** Ends of an attempt that are not an outcome. */
export const givingBack: readonly StoreCase[] = [
  {
    group,
    name: "a release with nothing recorded on the first attempt deletes the entry",
    async run({ store }) {
      const { id, fence } = await claimed(store);
      assert.equal(await store.release(id, fence, false), true);
      assert.equal(await store.read(id), null);
      assert.ok(await store.claim(newEntry({ id }), LEASE_MS));
    },
  },
  {
    group,
    name: "a release that asks to keep the row keeps it, with its fingerprint",
    async run({ store }) {
      const entry = await claimed(store);
      assert.equal(await store.release(entry.id, entry.fence, true), true);
      const kept = await readEntry(store, entry.id);
      assert.equal(kept.state, "released");
      assertBytes(kept.fingerprint, entry.fingerprint);
    },
  },
  {
    group,
    name: "a release with a recorded phase keeps the row, and the next owner resumes it",
    async run({ store }) {
      const entry = await claimed(store);
      await store.transaction(async (session) => {
        assert.equal(await session.recordPhase(entry.id, entry.fence, recordOf(0, "charge_created")), true);
      });
      assert.equal(await store.release(entry.id, entry.fence, false), true);
      const kept = await readEntry(store, entry.id);
      assert.equal(kept.state, "released");
      assert.equal(kept.recoveryPoint, "charge_created");
      assertBytes(kept.fingerprint, entry.fingerprint);
      assert.equal((await store.journal(entry.id)).records.length, 1);
    },
  },
  {
    group,
    name: "a release with an intent keeps the row and the intent",
    async run({ store }) {
      const { id, fence } = await claimed(store);
      assert.ok(await store.openIntent(id, fence, intentOf("authorize")));
      assert.equal(await store.cancelIntent(id, fence, "authorize", 1), true);
      assert.equal(await store.release(id, fence, false), true);
      assert.equal((await readEntry(store, id)).state, "released");
      assert.deepEqual(
        (await store.journal(id)).intents.map((intent) => intent.state),
        ["cancelled"],
      );
    },
  },
  {
    group,
    name: "a release on a later attempt keeps the row",
    async run({ store, advance }) {
      const { id } = await claimed(store);
      await advance(LEASE_MS);
      const fence = newFence();
      assert.ok(await store.takeOver(id, seen(await readEntry(store, id)), fence, LEASE_MS));
      assert.equal(await store.release(id, fence, false), true);
      assert.equal((await readEntry(store, id)).state, "released");
    },
  },
  {
    group,
    name: "a release after the entry needed recovery keeps the row",
    async run({ store, advance }) {
      const entry = await unknown(store);
      await advance(LEASE_MS);
      const fence = newFence();
      assert.ok(await store.takeOver(entry.id, seen(entry), fence, LEASE_MS));
      assert.equal(await store.release(entry.id, fence, false), true);
      assert.equal((await readEntry(store, entry.id)).state, "released");
    },
  },
  {
    group,
    name: "an entry that was marked as unknown is not deleted by its slow owner's release",
    async run({ store }) {
      const entry = await unknown(store);
      await store.release(entry.id, entry.fence, false);
      assertBytes((await readEntry(store, entry.id)).fingerprint, entry.fingerprint);
    },
  },
  {
    group,
    name: "a released entry can be taken over at once, but not claimed anew",
    async run({ store }) {
      const entry = await released(store);
      assert.ok(entry.clock.claimableInMs <= 0);
      // Its owner was at its end.
      assert.ok((entry.clock.settlesInMs ?? Infinity) <= 0);
      assert.equal(await store.claim(newEntry({ id: entry.id }), LEASE_MS), null);
      const taken = await store.takeOver(entry.id, seen(entry), newFence(), LEASE_MS);
      assert.equal(taken?.state, "in_progress");
      assert.equal(taken?.attempt, 2);
      assert.equal((await store.journal(entry.id)).records.length, 1);
    },
  },
  {
    group,
    name: "a release by a fence that does not own the entry changes nothing",
    async run({ store }) {
      const running = await claimed(store);
      assert.equal(await store.release(running.id, newFence(), false), false);
      assert.equal((await readEntry(store, running.id)).state, "in_progress");
      for (const entry of [await finished(store), await released(store)]) {
        assert.equal(await store.release(entry.id, entry.fence, false), false);
        assert.equal(stateOf(await readEntry(store, entry.id)), stateOf(entry));
      }
    },
  },
  {
    group,
    name: "the fence of a released entry can complete nothing any more",
    async run({ store }) {
      const { id, fence } = await released(store);
      assert.equal(await store.complete(id, fence, completionOf()), false);
      assert.equal((await readEntry(store, id)).state, "released");
    },
  },
  {
    group,
    name: "an entry marked as unknown shows why, and the answer that was given meanwhile",
    async run({ store }) {
      const { id, fence } = await claimed(store, { runKind: "capture" });
      const provisional = outcomeOf({ status: 500, body: new Uint8Array([0, 255, 10]) });
      assert.equal(await store.markUnknown(id, fence, markOf({ provisional })), true);
      const entry = await readEntry(store, id);
      assert.equal(entry.state, "needs_recovery");
      assert.equal(entry.reason, "the handler threw");
      assert.equal(entry.outcome?.status, 500);
      assertBytes(entry.outcome?.content, provisional.content);
      assert.equal(entry.outcomeGone, false);
      assert.equal(entry.completedAt, null);
      assert.equal(entry.expiresAt, null);
    },
  },
  {
    group,
    name: "an entry marked as unknown without an answer has none",
    async run({ store }) {
      const entry = await unknown(store);
      assert.equal(entry.outcome, null);
      assert.equal(entry.outcomeGone, false);
    },
  },
  {
    group,
    name: "marking keeps the fence: a slow owner's completion still counts",
    async run({ store }) {
      const entry = await unknown(store);
      assert.equal(await store.complete(entry.id, entry.fence, completionOf()), true);
      const completed = await readEntry(store, entry.id);
      assert.equal(completed.state, "succeeded");
      assert.equal(completed.outcome?.status, 201);
    },
  },
  {
    group,
    name: "a completion inside a transaction counts after the entry was marked as unknown, too",
    async run({ store }) {
      const entry = await unknown(store);
      const done = await store.transaction((session) => session.complete(entry.id, entry.fence, completionOf()));
      assert.equal(done, true);
      assert.equal((await readEntry(store, entry.id)).state, "succeeded");
    },
  },
  {
    group,
    name: "once recovery has claimed an entry, its slow owner can complete nothing any more",
    async run({ store, advance }) {
      const entry = await unknown(store);
      await advance(LEASE_MS);
      const fence = newFence();
      assert.ok(await store.takeOver(entry.id, seen(entry), fence, LEASE_MS));
      assert.equal(await store.complete(entry.id, entry.fence, completionOf()), false);
      assert.equal(await store.complete(entry.id, fence, completionOf({ state: "failed" })), true);
      assert.equal((await readEntry(store, entry.id)).state, "failed");
    },
  },
  {
    group,
    name: "a mark by a stale fence, or on a finished entry, changes nothing",
    async run({ store }) {
      const running = await claimed(store);
      assert.equal(await store.markUnknown(running.id, newFence(), markOf({ provisional: outcomeOf() })), false);
      assert.equal(stateOf(await readEntry(store, running.id)), stateOf(running));
      const done = await finished(store);
      assert.equal(
        await store.markUnknown(done.id, done.fence, markOf({ provisional: outcomeOf({ status: 500 }) })),
        false,
      );
      assert.equal(stateOf(await readEntry(store, done.id)), stateOf(done));
    },
  },
];
