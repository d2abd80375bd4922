import assert from "node:assert/strict";
import type { Session, Store } from "../core/store.ts";
import {
  claimed,
  completionOf,
  finished,
  LEASE_MS,
  LIMITS,
  meanwhile,
  newEntry,
  newFence,
  newValue,
  readEntry,
  recordOf,
  rolledBack,
  type StoreCase,
  seen,
  whileOpen,
} from "./store-harness.ts";

const group = "fenced statements inside transactions";

/** An entry that an open transaction holds is not taken away under it. */
export const fencing: readonly StoreCase[] = [
  {
    group,
    name: "the owner owns its entry inside a transaction of the caller's, also past its lease",
    async run({ store, advance }) {
      const { id, fence } = await claimed(store, { runKind: "capture" });
      assert.equal(await store.transaction(({ tx }) => store.owns(tx, id, fence)), true);
      await advance(LEASE_MS);
      assert.equal(await store.transaction(({ tx }) => store.owns(tx, id, fence)), true);
    },
  },
  {
    group,
    name: "a fence that was replaced, released or has finished owns nothing",
    async run({ store, advance }) {
      const lost = await claimed(store, { runKind: "capture" });
      await advance(LEASE_MS);
      assert.ok(await store.takeOver(lost.id, seen(await readEntry(store, lost.id)), newFence(), LEASE_MS));
      const freed = await claimed(store);
      await store.release(freed.id, freed.fence, false);
      for (const { id, fence } of [lost, freed, await finished(store)]) {
        assert.equal(await rolledBack(store, ({ tx }) => store.owns(tx, id, fence)), false);
      }
    },
  },
  {
    group,
    name: "an owned entry is not taken over before the transaction ends",
    async run({ store, advance, insertRow, countRows }) {
      const { id, fence, take } = await lapsedEntry(store, advance);
      const value = newValue();
      const own = async ({ tx }: Session<unknown>) => {
        await insertRow(tx, value);
        return await store.owns(tx, id, fence);
      };
      await whileOpen(store, own, async ({ result, session, commit }) => {
        assert.equal(result, true);
        const taking = take();
        await meanwhile(store);
        // Only where the takeover has waited can the owner still finish in the same transaction.
        assert.equal(await session.complete(id, fence, completionOf()), true);
        await commit();
        assert.equal(await taking, null);
      });
      assert.equal(await countRows(value), 1);
      assert.equal((await readEntry(store, id)).state, "succeeded");
    },
  },
  {
    group,
    name: "a takeover that waited for an owner's rollback gets the entry",
    async run({ store, advance }) {
      const { id, fence, take } = await lapsedEntry(store, advance);
      const own = ({ tx }: Session<unknown>) => store.owns(tx, id, fence);
      await whileOpen(store, own, async ({ rollBack }) => {
        const taking = take();
        await meanwhile(store);
        await rollBack();
        assert.equal((await taking)?.attempt, 2);
      });
    },
  },
  {
    group,
    name: "a takeover waits for an open transaction that recorded a phase, and then resumes after it",
    async run({ store, advance, insertRow, countRows }) {
      const { id, fence, take } = await lapsedEntry(store, advance);
      const value = newValue();
      const phase = async (session: Session<unknown>) => {
        await insertRow(session.tx, value);
        return await session.recordPhase(id, fence, recordOf(0, "charge_created"));
      };
      await whileOpen(store, phase, async ({ result, commit }) => {
        assert.equal(result, true);
        const taking = take();
        await meanwhile(store);
        await commit();
        assert.equal((await taking)?.recoveryPoint, "charge_created");
      });
      assert.equal(await countRows(value), 1);
    },
  },
  {
    group,
    name: "a completion in an open transaction makes a racing takeover come away with nothing",
    async run({ store, advance }) {
      const { id, fence, take } = await lapsedEntry(store, advance);
      const complete = (session: Session<unknown>) => session.complete(id, fence, completionOf());
      await whileOpen(store, complete, async ({ result, commit }) => {
        assert.equal(result, true);
        const taking = take();
        await meanwhile(store);
        await commit();
        assert.equal(await taking, null);
      });
    },
  },
  {
    group,
    name: "an identity that a transaction finished but has not committed yet is claimed by nobody else",
    async run({ store }) {
      const entry = newEntry({ runKind: "transaction" });
      const finish = (session: Session<unknown>) => session.insertFinished(entry, completionOf());
      await whileOpen(store, finish, async ({ commit }) => {
        const claiming = store.claim({ ...entry, fence: newFence() }, LEASE_MS);
        await meanwhile(store);
        await commit();
        assert.equal(await claiming, null);
      });
      assert.equal((await readEntry(store, entry.id)).state, "succeeded");
    },
  },
  {
    group,
    name: "a renewal does not wait for a phase that has only entered",
    async run({ store }) {
      const { id, fence } = await claimed(store);
      const enter = (session: Session<unknown>) => session.enter(id, fence, LIMITS);
      await whileOpen(store, enter, async ({ result }) => {
        assert.equal(result, true);
        assert.equal(await store.renew(id, fence, LEASE_MS), true);
      });
    },
  },
];

async function lapsedEntry(store: Store, advance: (ms: number) => Promise<void>) {
  const { id, fence, attempt } = await claimed(store);
  await advance(LEASE_MS);
  const take = () => store.takeOver(id, { fence, attempt, state: "in_progress" }, newFence(), LEASE_MS);
  return { id, fence, take };
}
