import assert from "node:assert/strict";
import {
  assertBytes,
  assertKeptFor,
  claimed,
  completionOf,
  finished,
  LEASE_MS,
  newEntry,
  newFence,
  outcomeOf,
  RETENTION_MS,
  readEntry,
  recordOf,
  released,
  type StoreCase,
  seen,
  stateOf,
  unknown,
} from "./store-harness.ts";

const group = "completion and retention";
const TOMBSTONE_MS = 7_200_000;

/** Outcomes: stored once, by the owner, and kept as long as promised. */
export const completing: readonly StoreCase[] = [
  {
    group,
    name: "an outcome is read back byte for byte: empty, binary, without headers, with repeated ones",
    async run({ store }) {
      const everyByte = Uint8Array.from({ length: 256 }, (_, index) => index);
      const outcomes = [
        outcomeOf(),
        outcomeOf({ status: 204, headers: [], body: new Uint8Array(0) }),
        outcomeOf({ status: 200, headers: [["content-type", "application/octet-stream"]], body: everyByte }),
        outcomeOf({
          headers: [
            ["link", '<a>; rel="x"'],
            ["link", "<b>"],
            ["etag", ""],
          ],
          body: new Uint8Array(70_000),
        }),
      ];
      for (const outcome of outcomes) {
        const { outcome: stored } = await finished(store, { outcome });
        assert.equal(stored?.status, outcome.status);
        assertBytes(stored?.content, outcome.content);
        assert.equal(stored?.pointer, outcome.pointer);
      }
    },
  },
  {
    group,
    name: "a failure is stored as a failure",
    async run({ store }) {
      const entry = await finished(store, { state: "failed", outcome: outcomeOf({ status: 402 }) });
      assert.equal(entry.state, "failed");
      assert.equal(entry.outcome?.status, 402);
    },
  },
  {
    group,
    name: "a completion by a stale fence matches nothing and changes nothing",
    async run({ store, advance }) {
      const { id, fence } = await claimed(store);
      await advance(LEASE_MS);
      const taken = await store.takeOver(id, seen(await readEntry(store, id)), newFence(), LEASE_MS);
      assert.ok(taken);
      assert.equal(await store.complete(id, fence, completionOf()), false);
      const inside = await store.transaction((session) => session.complete(id, fence, completionOf()));
      assert.equal(inside, false);
      assert.equal(stateOf(await readEntry(store, id)), stateOf(taken));
    },
  },
  {
    group,
    name: "an entry is completed once: a second completion changes nothing",
    async run({ store }) {
      const entry = await finished(store);
      const other = completionOf({ state: "failed", outcome: outcomeOf({ status: 500 }) });
      assert.equal(await store.complete(entry.id, entry.fence, other), false);
      assert.equal(stateOf(await readEntry(store, entry.id)), stateOf(entry));
    },
  },
  {
    group,
    name: "of a completion and a takeover of a lapsed entry exactly one wins",
    async run({ store, advance }) {
      const entries = [];
      for (let round = 0; round < 20; round += 1) entries.push(await claimed(store));
      await advance(LEASE_MS);
      for (const [round, { id, fence, attempt }] of entries.entries()) {
        const take = () => store.takeOver(id, { fence, attempt, state: "in_progress" }, newFence(), LEASE_MS);
        const complete = () => store.complete(id, fence, completionOf());
        // Either is sent first, in turns.
        const racing = round % 2 === 0 ? [take(), complete()] : [complete(), take()];
        const wins = (await Promise.all(racing)).filter(Boolean);
        assert.equal(wins.length, 1);
      }
    },
  },
  {
    group,
    name: "retention counts from the completion, not from the claim",
    async run({ store, advance }) {
      const { id, fence } = await claimed(store);
      await advance(RETENTION_MS);
      assert.equal(await store.complete(id, fence, completionOf()), true);
      await advance(RETENTION_MS / 2);
      const kept = await readEntry(store, id);
      assert.equal(kept.clock.expired, false);
      assertKeptFor(kept, RETENTION_MS);
      await advance(RETENTION_MS / 2);
      const { clock } = await readEntry(store, id);
      assert.equal(clock.expired, true);
      assert.equal(clock.tombstoned, false);
    },
  },
  {
    group,
    name: "an outcome that is kept for no time is over at the very instant of its completion",
    async run({ store }) {
      for (const tombstoneMs of [0, TOMBSTONE_MS]) {
        const { completedAt, expiresAt } = await finished(store, { state: "failed", retentionMs: 0, tombstoneMs });
        assert.ok(completedAt !== null);
        assert.equal(expiresAt?.getTime(), completedAt.getTime());
      }
    },
  },
  {
    group,
    name: "an expired entry is forgotten, and its identity can be claimed as new",
    async run({ store, advance }) {
      const { id } = await finished(store);
      await advance(RETENTION_MS);
      assert.equal(await store.claim(newEntry({ id }), LEASE_MS), null);
      assert.equal(await store.forgetExpired(id), true);
      assert.equal(await store.forgetExpired(id), false);
      assert.equal(await store.read(id), null);
      const entry = await store.claim(newEntry({ id }), LEASE_MS);
      assert.equal(entry?.attempt, 1);
    },
  },
  {
    group,
    name: "an entry whose retention is not over is not forgotten",
    async run({ store, advance }) {
      const running = await claimed(store);
      const done = await finished(store, { retentionMs: LEASE_MS * 4 });
      await advance(LEASE_MS * 2);
      assert.equal(await store.forgetExpired(running.id), false);
      assert.equal(await store.forgetExpired(done.id), false);
      assert.equal((await readEntry(store, running.id)).state, "in_progress");
      assert.equal((await readEntry(store, done.id)).state, "succeeded");
    },
  },
  {
    group,
    name: "a tombstone outlives the outcome, and is not forgotten before its own time",
    async run({ store, advance }) {
      const { id } = await finished(store, { tombstoneMs: TOMBSTONE_MS });
      await advance(RETENTION_MS);
      const { clock } = await readEntry(store, id);
      assert.equal(clock.expired, true);
      assert.equal(clock.tombstoned, true);
      assert.equal(await store.forgetExpired(id), false);
      await advance(TOMBSTONE_MS);
      assert.equal((await readEntry(store, id)).clock.tombstoned, false);
      assert.equal(await store.forgetExpired(id), true);
    },
  },
  {
    group,
    name: "the tombstone of a failure is forgotten when that is asked, its retention being over; a purge keeps it",
    async run({ store, advance }) {
      const { id, seed } = await finished(store, { state: "failed", tombstoneMs: TOMBSTONE_MS });
      assert.equal(await store.forgetExpired(id), false);
      await advance(RETENTION_MS);
      assert.equal(await store.purge(10), 1);
      assertBytes((await readEntry(store, id)).seed, seed);
      assert.equal(await store.forgetExpired(id), true);
    },
  },
  {
    group,
    name: "a purge turns an expired entry with a tombstone into one: its outcome is gone, its fingerprint stays",
    async run({ store, advance }) {
      const entry = await finished(store, { tombstoneMs: TOMBSTONE_MS });
      await advance(RETENTION_MS);
      assert.equal(await store.purge(10), 1);
      assert.equal(await store.purge(10), 0);
      const tombstone = await readEntry(store, entry.id);
      assert.equal(tombstone.state, "succeeded");
      assert.equal(tombstone.outcome, null);
      assert.equal(tombstone.outcomeGone, true);
      assertBytes(tombstone.fingerprint, entry.fingerprint);
      await advance(TOMBSTONE_MS);
      assert.equal(await store.purge(10), 1);
      assert.equal(await store.read(entry.id), null);
    },
  },
  {
    group,
    name: "a purge never removes an entry that is in progress, released or needs recovery",
    async run({ store, advance }) {
      const entries = [await claimed(store), await released(store), await unknown(store)];
      await advance(RETENTION_MS * 1_000);
      assert.equal(await store.purge(100), 0);
      for (const { id, state } of entries) assert.equal((await readEntry(store, id)).state, state);
    },
  },
  {
    group,
    name: "a purge never removes an outcome before its retention is over",
    async run({ store, advance }) {
      const { id } = await finished(store);
      await advance(RETENTION_MS / 2);
      assert.equal(await store.purge(100), 0);
      assert.equal((await readEntry(store, id)).outcome?.status, 201);
    },
  },
  {
    group,
    name: "a purge removes expired entries with all that is recorded for them, at most the limit at a time",
    async run({ store, advance }) {
      const ids = [];
      for (let count = 0; count < 5; count += 1) {
        const { id, fence } = await claimed(store);
        assert.equal(await store.recordCall(id, fence, recordOf(0, "authorize", "call")), true);
        assert.equal(await store.complete(id, fence, completionOf()), true);
        ids.push(id);
      }
      await advance(RETENTION_MS);
      assert.deepEqual([await store.purge(2), await store.purge(2), await store.purge(2)], [2, 2, 1]);
      for (const id of ids) {
        assert.equal(await store.read(id), null);
        assert.ok(await store.claim(newEntry({ id }), LEASE_MS));
        assert.deepEqual(await store.journal(id), { records: [], intents: [] });
      }
    },
  },
];
