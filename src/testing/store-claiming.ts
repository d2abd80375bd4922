import assert from "node:assert/strict";
import {
  assertBytes,
  claimed,
  completionOf,
  intentOf,
  LEASE_MS,
  markOf,
  newEntry,
  newFence,
  readEntry,
  recordOf,
  type StoreCase,
  stateOf,
} from "./store-harness.ts";

const group = "claiming";

/** A first claim, a second one, many at once. */
export const claiming: readonly StoreCase[] = [
  {
    group,
    name: "a store that is set up starts",
    run: async ({ store }) => assert.equal(await store.start(), undefined),
  },
  {
    group,
    name: "a store tells its own clock, by which what it writes is dated",
    async run({ store }) {
      const beforeMs = await store.clockMs();
      const { createdAt } = await claimed(store);
      const afterMs = await store.clockMs();
      // A date has whole milliseconds.
      assert.ok(createdAt.getTime() >= Math.floor(beforeMs) && createdAt.getTime() <= Math.ceil(afterMs));
    },
  },
  {
    group,
    name: "a claim of a new identity gives the entry in progress, on its first attempt",
    async run({ store }) {
      const entry = await claimed(store);
      assert.equal(entry.state, "in_progress");
      assert.equal(entry.attempt, 1);
      assert.equal(entry.recoveryPoint, null);
      assert.equal(entry.outcome, null);
      assert.equal(entry.outcomeGone, false);
      assert.equal(entry.completedAt, null);
      assert.equal(entry.expiresAt, null);
      assert.ok(entry.clock.claimableInMs > LEASE_MS / 2 && entry.clock.claimableInMs <= LEASE_MS);
      assert.ok(entry.clock.ageMs >= 0 && entry.clock.ageMs < LEASE_MS / 2);
      assert.equal(entry.clock.expired, false);
      assert.equal(entry.clock.tombstoned, false);
    },
  },
  {
    group,
    name: "a claim of an identity that has an entry gives nothing and changes nothing",
    async run({ store }) {
      const first = await claimed(store);
      const before = stateOf(await readEntry(store, first.id));
      assert.equal(await store.claim(newEntry({ id: first.id }), LEASE_MS), null);
      assert.equal(stateOf(await readEntry(store, first.id)), before);
    },
  },
  {
    group,
    name: "a claim of an identity whose entry is finished gives nothing, with the fence of the finished one too",
    async run({ store }) {
      const entry = newEntry();
      await store.claim(entry, LEASE_MS);
      await store.complete(entry.id, entry.fence, completionOf());
      assert.equal(await store.claim(entry, LEASE_MS), null);
      assert.equal((await readEntry(store, entry.id)).state, "succeeded");
    },
  },
  {
    group,
    name: "a claim sent again with the same fence is the same claim",
    async run({ store }) {
      const entry = newEntry();
      const first = await store.claim(entry, LEASE_MS);
      const second = await store.claim(entry, LEASE_MS);
      assert.ok(first !== null && second !== null);
      assertBytes(second.fence, entry.fence);
      assert.equal(second.attempt, 1);
      assert.equal(second.createdAt.getTime(), first.createdAt.getTime());
    },
  },
  {
    group,
    name: "of 50 concurrent claims of one identity exactly one is granted",
    async run({ store }) {
      const { id } = newEntry();
      const claims = Array.from({ length: 50 }, () => store.claim(newEntry({ id }), LEASE_MS));
      const granted = (await Promise.all(claims)).filter((entry) => entry !== null);
      assert.equal(granted.length, 1);
      assertBytes((await readEntry(store, id)).fence, granted[0]?.fence ?? null);
    },
  },
  {
    group,
    name: "an entry is read back as it was claimed, byte for byte",
    async run({ store }) {
      const everyByte = Uint8Array.from({ length: 256 }, (_, index) => index);
      const full = newEntry({ tenant: "tänant", key: `'"\\ %_$1 🗝`, runKind: "capture", operationVersion: 7 });
      await assertReadsBack(store, { ...full, input: everyByte, context: new Uint8Array(0) });
      await assertReadsBack(store, newEntry({ client: null, wireDigest: null, input: null, context: null }));
      await assertReadsBack(store, newEntry({ client: "", runKind: "transaction" }));
    },
  },
  {
    group,
    name: "what a store was given and what it gave can be changed without changing what it keeps",
    async run({ store }) {
      const entry = newEntry();
      const before = Uint8Array.from(entry.fingerprint);
      const granted = await store.claim(entry, LEASE_MS);
      entry.fingerprint.fill(0);
      granted?.fingerprint.fill(0);
      (await readEntry(store, entry.id)).fingerprint.fill(0);
      assertBytes((await readEntry(store, entry.id)).fingerprint, before);
    },
  },
  {
    group,
    name: "an identity without entry reads as nothing, and no statement matches it",
    async run({ store }) {
      const { id, fence } = newEntry();
      const seen = { fence, attempt: 1, state: "in_progress" } as const;
      assert.equal(await store.read(id), null);
      assert.equal(await store.takeOver(id, seen, newFence(), LEASE_MS), null);
      assert.equal(await store.renew(id, fence, LEASE_MS), false);
      assert.equal(await store.forgetExpired(id), false);
      assert.equal(await store.release(id, fence, false), false);
      assert.equal(await store.suspend(id, fence, 1000), false);
      assert.equal(await store.markUnknown(id, fence, markOf()), false);
      assert.equal(await store.complete(id, fence, completionOf()), false);
      assert.deepEqual(await store.journal(id), { records: [], intents: [] });
      assert.equal(await store.openIntent(id, fence, intentOf("authorize")), null);
      assert.equal(await store.cancelIntent(id, fence, "authorize", 1), false);
      assert.equal(await store.recordCall(id, fence, recordOf(0, "authorize", "call")), false);
      assert.equal(await store.read(id), null);
    },
  },
];

async function assertReadsBack(
  store: Parameters<typeof claimed>[0],
  entry: ReturnType<typeof newEntry>,
): Promise<void> {
  const granted = await store.claim(entry, LEASE_MS);
  assert.ok(granted);
  for (const stored of [granted, await readEntry(store, entry.id)]) {
    for (const name of ["id", "fingerprint", "wireDigest", "fence", "seed", "input", "context"] as const) {
      assertBytes(stored[name], entry[name]);
    }
    for (const name of ["tenant", "client", "operation", "key", "runKind", "operationVersion"] as const) {
      assert.equal(stored[name], entry[name]);
    }
  }
}
