import assert from "node:assert/strict";
import { assertUnsettled, decided, givenUp, quiet, releasing, succeeded } from "./store-decisions.ts";
import {
  assertBytes,
  assertKeptFor,
  claimed,
  completionOf,
  finished,
  hexId,
  hexIds,
  intentOf,
  LEASE_MS,
  markOf,
  newEntry,
  newFence,
  outcomeOf,
  RETENTION_MS,
  readEntry,
  recordOf,
  type StoreCase,
  seen,
  stateOf,
  unknown,
} from "./store-harness.ts";

const group = "resolving by hand";

export const resolving: readonly StoreCase[] = [
  {
    group,
    name: "an identity without entry, a finished one and one at work are not resolved, not even by force",
    async run({ store, resolutions }) {
      const forced = succeeded({ force: true });
      assert.deepEqual(await store.resolve(newEntry().id, forced), { kind: "absent" });
      const done = await finished(store, { state: "failed" });
      assert.deepEqual(await store.resolve(done.id, forced), { kind: "finished", state: "failed" });
      const running = await claimed(store);
      const resolved = await store.resolve(running.id, forced);
      assert.ok(resolved.kind === "running" && resolved.claimableInMs > 0 && resolved.claimableInMs <= LEASE_MS);
      for (const entry of [done, running]) assert.equal(stateOf(await readEntry(store, entry.id)), stateOf(entry));
      assert.deepEqual(await resolutions(), []);
    },
  },
  {
    group,
    name: "an entry of which nobody can say when it settles is resolved by force only, and by force again after a forced release",
    async run({ store, advance, resolutions }) {
      const { id } = await unknown(store);
      await advance(LEASE_MS * 10);
      const entry = await readEntry(store, id);
      const refused = await store.resolve(entry.id, succeeded());
      assert.deepEqual(refused, { kind: "unsettled", openIntents: [], settlesInMs: null });
      assert.equal(stateOf(await readEntry(store, entry.id)), stateOf(entry));
      assert.deepEqual(await resolutions(), []);
      assert.equal((await store.resolve(entry.id, releasing({ force: true }))).kind, "resolved");
      assertUnsettled(await store.resolve(entry.id, succeeded()));
      assert.equal((await store.resolve(entry.id, succeeded({ force: true }))).kind, "resolved");
      assert.deepEqual(
        (await resolutions()).map(({ forced }) => forced),
        [true, true],
      );
    },
  },
  {
    group,
    name: "a decision about an older attempt changes nothing, not even by force; one about the last attempt counts",
    async run({ store, advance, resolutions }) {
      const { id, fence } = await quiet(store);
      await advance(LEASE_MS);
      const looked = await readEntry(store, id);
      const next = newFence();
      assert.ok(await store.takeOver(id, seen({ ...looked, fence }), next, 1));
      assert.equal(await store.markUnknown(id, next, markOf({ quietMs: 0 })), true);
      await advance(LEASE_MS);
      const before = stateOf(await readEntry(store, id));
      for (const force of [false, true]) {
        const late = await store.resolve(id, succeeded({ attempt: looked.attempt, force }));
        assert.deepEqual(late, { kind: "changed", attempt: looked.attempt + 1 });
      }
      assert.equal(stateOf(await readEntry(store, id)), before);
      assert.deepEqual(await resolutions(), []);
      assert.equal((await store.resolve(id, succeeded({ attempt: looked.attempt + 1 }))).kind, "resolved");
    },
  },
  {
    group,
    name: "an entry is resolved once its quiet time after the last lease is over, not sooner",
    async run({ store, advance, resolutions }) {
      const { id } = await quiet(store);
      const early = await store.resolve(id, succeeded());
      assertUnsettled(early);
      assert.ok(early.settlesInMs !== null && early.settlesInMs > 0 && early.settlesInMs <= LEASE_MS);
      await advance(LEASE_MS);
      // Force that was not needed is none: the audit tells who decided against the rule.
      const resolved = await store.resolve(id, succeeded({ force: true }));
      assert.deepEqual(resolved, { kind: "resolved", from: "needs_recovery", openIntents: [] });
      assert.deepEqual(
        (await resolutions()).map(({ forced }) => forced),
        [false],
      );
    },
  },
  {
    group,
    name: "while a call may still land its entry is not resolved, and the open intents are shown (V14)",
    async run({ store, advance }) {
      const id = await givenUp(store, [60_000, 600_000]);
      await advance(60_000);
      const refused = await store.resolve(id, decided({ verdict: "failed", completion: completionOf() }));
      assertUnsettled(refused);
      assert.ok(refused.settlesInMs !== null && refused.settlesInMs > 500_000 && refused.settlesInMs <= 540_000);
      assert.deepEqual(refused.openIntents.map(({ call, state, form }) => [call, state, form]).toSorted(), [
        ["call_0", "open", "settles"],
        ["call_1", "open", "settles"],
      ]);
      assert.equal((await readEntry(store, id)).state, "needs_recovery");
      await advance(540_000);
      const resolved = await store.resolve(id, succeeded());
      assert.ok(resolved.kind === "resolved" && resolved.openIntents.length === 2);
    },
  },
  {
    group,
    name: "an open call for which no time was declared wants force",
    async run({ store, advance, resolutions }) {
      const id = await givenUp(store, [60_000, null]);
      await advance(LEASE_MS * 10);
      const refused = await store.resolve(id, succeeded());
      assertUnsettled(refused);
      assert.equal(refused.settlesInMs, null);
      assert.equal((await store.resolve(id, succeeded({ force: true }))).kind, "resolved");
      const [audit] = await resolutions();
      assert.deepEqual([audit?.forced, audit?.openIntents], [true, 2]);
    },
  },
  {
    group,
    name: "calls that were cancelled or whose result is known hold nothing up",
    async run({ store, advance }) {
      const { id, fence } = await claimed(store, {}, 1);
      const untimed = { settlesWithinMs: null };
      await store.openIntent(id, fence, intentOf("authorize", 1, untimed));
      await store.openIntent(id, fence, intentOf("capture", 1, untimed));
      assert.equal(await store.cancelIntent(id, fence, "capture", 1), true);
      assert.equal(await store.recordCall(id, fence, recordOf(0, "authorize", "call")), true);
      await store.markUnknown(id, fence, markOf({ quietMs: 0 }));
      await advance(1);
      const resolved = await store.resolve(id, succeeded());
      assert.deepEqual(resolved, { kind: "resolved", from: "needs_recovery", openIntents: [] });
    },
  },
  {
    group,
    name: "a decision is an outcome like any other: kept, replayed, and final for whoever owned the entry",
    async run({ store, advance }) {
      for (const state of ["succeeded", "failed"] as const) {
        const { id, fence } = await quiet(store);
        await advance(LEASE_MS);
        const outcome = outcomeOf({ status: 418, body: new Uint8Array([0, 255]) });
        const decision = decided({ verdict: state, completion: completionOf({ outcome }) });
        assert.equal((await store.resolve(id, decision)).kind, "resolved");
        assert.equal(await store.complete(id, fence, completionOf()), false);
        const entry = await readEntry(store, id);
        assert.deepEqual([entry.state, entry.outcome?.status, entry.clock.expired], [state, 418, false]);
        assertBytes(entry.outcome?.content, outcome.content);
        assertKeptFor(entry, RETENTION_MS);
        assert.deepEqual([entry.clock.sweepInMs, entry.clock.settlesInMs], [null, null]);
        assert.deepEqual(await store.resolve(id, succeeded({ force: true })), { kind: "finished", state });
      }
    },
  },
  {
    group,
    name: "an entry of phases that is released goes on: with all it knows, and due for the sweeper at once",
    async run({ store, advance }) {
      const { id, fence } = await claimed(store, {}, 1);
      await store.recordCall(id, fence, recordOf(0, "authorize", "call"));
      await store.markUnknown(id, fence, markOf({ quietMs: 0 }));
      await advance(1);
      assert.equal((await store.resolve(id, releasing())).kind, "resolved");
      const entry = await readEntry(store, id);
      assert.deepEqual([entry.state, entry.attempt, entry.outcome], ["released", 2, null]);
      assert.equal(await store.complete(id, fence, completionOf()), false);
      assert.equal((await store.journal(id)).records.length, 1);
      const { operation, runKind, operationVersion } = entry;
      const taken = await store.takeDue({ operation, runKind, operationVersion }, 10, LEASE_MS);
      assert.deepEqual(hexIds(taken), hexIds([entry]));
      assert.deepEqual([taken[0]?.from, taken[0]?.entry?.attempt], ["released", 3]);
    },
  },
  {
    group,
    name: "a released entry keeps its fingerprint, and its next owner takes it over",
    async run({ store, advance }) {
      const { id } = await quiet(store);
      await advance(LEASE_MS);
      const before = await readEntry(store, id);
      await store.resolve(id, releasing());
      const entry = await readEntry(store, id);
      assertBytes(entry.fingerprint, before.fingerprint);
      const taken = await store.takeOver(id, seen(entry), newFence(), LEASE_MS);
      assert.deepEqual([taken?.state, taken?.attempt], ["in_progress", before.attempt + 2]);
    },
  },
  {
    group,
    name: "a captured entry that is released waits for its client, and wants no force to be decided after all",
    async run({ store, advance, resolutions }) {
      const { id } = await quiet(store);
      await advance(LEASE_MS);
      await store.resolve(id, releasing());
      const { clock, operation, operationVersion } = await readEntry(store, id);
      assert.equal(clock.sweepInMs, null);
      assert.deepEqual(await store.takeDue({ operation, runKind: "capture", operationVersion }, 10, LEASE_MS), []);
      assert.deepEqual(await store.resolve(id, succeeded()), { kind: "resolved", from: "released", openIntents: [] });
      assert.deepEqual(
        (await resolutions()).map(({ forced }) => forced),
        [false, false],
      );
    },
  },
  {
    group,
    name: "an entry whose retention is over counts as absent",
    async run({ store, advance }) {
      const { id } = await finished(store);
      await advance(RETENTION_MS);
      assert.deepEqual(await store.resolve(id, succeeded()), { kind: "absent" });
    },
  },
  {
    group,
    name: "an entry whose lease lapsed is resolved by force, and its owner can commit nothing more",
    async run({ store, advance }) {
      const { id, fence } = await claimed(store);
      await advance(LEASE_MS);
      assertUnsettled(await store.resolve(id, succeeded()));
      const resolved = await store.resolve(id, succeeded({ force: true }));
      assert.ok(resolved.kind === "resolved" && resolved.from === "in_progress");
      assert.equal(await store.complete(id, fence, completionOf()), false);
    },
  },
  {
    group,
    name: "every decision leaves an audit row: who, what, why, and what was known then",
    async run({ store, advance, resolutions }) {
      const { id } = await quiet(store);
      await advance(LEASE_MS);
      await store.resolve(id, releasing({ by: "ada", note: null }));
      const [first] = await resolutions();
      const who = { entryId: hexId({ id }), by: "ada", note: null };
      const what = { verdict: "released" as const, status: null, forced: false, openIntents: 0 };
      assert.deepEqual(first, { ...who, ...what, stateBefore: "needs_recovery", reasonBefore: "the handler threw" });
      await store.resolve(id, succeeded({ by: "grace", note: "bank statement", force: true }));
      const second = (await resolutions()).find(({ by }) => by === "grace");
      assert.deepEqual(
        [second?.verdict, second?.status, second?.note, second?.stateBefore],
        ["succeeded", 202, "bank statement", "released"],
      );
    },
  },
  {
    group,
    name: "of a decision and a slow owner's completion that race, one counts",
    async run({ store, advance, resolutions }) {
      for (let round = 0; round < 5; round += 1) {
        const { id, fence } = await quiet(store);
        await advance(LEASE_MS);
        const before = (await resolutions()).length;
        const [resolved, completed] = await Promise.all([
          store.resolve(id, succeeded()),
          store.complete(id, fence, completionOf()),
        ]);
        assert.equal(resolved.kind, completed ? "finished" : "resolved");
        assert.equal((await readEntry(store, id)).outcome?.status, completed ? 201 : 202);
        assert.equal((await resolutions()).length - before, completed ? 0 : 1);
      }
    },
  },
];
