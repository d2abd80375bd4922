import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { newPointer } from "../core/body-store.ts";
import type { Completion } from "../core/completion.ts";
import type { Store } from "../core/store.ts";
import { claimed, completionOf, finished, newEntry, RETENTION_MS, type StoreCase } from "./store-harness.ts";

const group = "bodies outside";

const CHECK_MS = 60_000;
const AGAIN_MS = 600_000;

const pointerOf = (id: Uint8Array): string => newPointer(id, randomBytes(16));

/** A completion whose body lies under the pointer. */
function pointing(pointer: string, overrides: Partial<Completion> = {}): Completion {
  const { outcome } = completionOf();
  assert.ok(outcome.content);
  return completionOf({ outcome: { ...outcome, pointer }, ...overrides });
}

/** Claims an entry and completes it with a body outside, noted before as the engine does. */
async function completedOutside(store: Store, overrides: Partial<Completion> = {}) {
  const { id, fence } = await claimed(store);
  const pointer = pointerOf(id);
  await store.bodies.note(pointer, id, CHECK_MS);
  assert.equal(await store.complete(id, fence, pointing(pointer, overrides)), true);
  return { id, pointer };
}

const due = async (store: Store, limit = 10) =>
  (await store.bodies.due(limit, AGAIN_MS)).toSorted((a, b) => (a.pointer < b.pointer ? -1 : 1));

export const bodies: readonly StoreCase[] = [
  {
    group,
    name: "the pointer of an outcome is stored with it, whoever completes the entry",
    async run({ store }) {
      const { id, pointer } = await completedOutside(store);
      assert.equal((await store.read(id))?.outcome?.pointer, pointer);
      const entry = newEntry({ runKind: "transaction" });
      const own = pointerOf(entry.id);
      await store.transaction((session) => session.insertFinished(entry, pointing(own)));
      assert.equal((await store.read(entry.id))?.outcome?.pointer, own);
      const inRow = await finished(store);
      assert.equal(inRow.outcome?.pointer, null);
    },
  },
  {
    group,
    name: "a noted body is due once its time has come, not in use while no outcome points at it",
    async run({ store, advance }) {
      const { id } = await claimed(store);
      const pointer = pointerOf(id);
      await store.bodies.note(pointer, id, CHECK_MS);
      await advance(CHECK_MS - 10_000);
      assert.deepEqual(await due(store), []);
      await advance(10_000);
      assert.deepEqual(await due(store), [{ pointer, inUse: false }]);
    },
  },
  {
    group,
    name: "a body that an outcome points at is in use, another one of the same entry is not",
    async run({ store, advance }) {
      const { id, pointer } = await completedOutside(store);
      const orphan = pointerOf(id);
      await store.bodies.note(orphan, id, CHECK_MS);
      await advance(CHECK_MS);
      const expected = [
        { pointer, inUse: true },
        { pointer: orphan, inUse: false },
      ];
      assert.deepEqual(
        await due(store),
        expected.toSorted((a, b) => (a.pointer < b.pointer ? -1 : 1)),
      );
    },
  },
  {
    group,
    name: "a body is noted whatever becomes of the transaction that is open meanwhile",
    async run({ store, advance }) {
      const entry = newEntry({ runKind: "transaction" });
      const pointer = pointerOf(entry.id);
      await store.bodies.note(pointer, entry.id, CHECK_MS);
      const rolledBack = store.transaction(async (session) => {
        await session.insertFinished(entry, pointing(pointer));
        throw new Error("rolled back");
      });
      await assert.rejects(rolledBack, /rolled back/);
      await advance(CHECK_MS);
      assert.deepEqual(await due(store), [{ pointer, inUse: false }]);
    },
  },
  {
    group,
    name: "a body that was handed out is put off: others get the next ones, and it comes again in the end",
    async run({ store, advance }) {
      const { id } = await claimed(store);
      const pointers = Array.from({ length: 3 }, () => pointerOf(id));
      for (const pointer of pointers) await store.bodies.note(pointer, id, 0);
      const first = await due(store, 2);
      const second = await due(store, 2);
      assert.deepEqual([first.length, second.length], [2, 1]);
      assert.deepEqual([...first, ...second].map(({ pointer }) => pointer).toSorted(), pointers.toSorted());
      assert.deepEqual(await due(store), []);
      await advance(AGAIN_MS);
      assert.equal((await due(store)).length, 3);
    },
  },
  {
    group,
    name: "sweepers that race for bodies share them out: each is handed out once",
    async run({ store }) {
      const { id } = await claimed(store);
      const pointers = Array.from({ length: 20 }, () => pointerOf(id));
      for (const pointer of pointers) await store.bodies.note(pointer, id, 0);
      const racing = await Promise.all(Array.from({ length: 8 }, () => due(store, 5)));
      const handedOut = [...racing.flat(), ...(await due(store, 20))].map(({ pointer }) => pointer);
      assert.deepEqual(handedOut.toSorted(), pointers.toSorted());
    },
  },
  {
    group,
    name: "struck bodies never come again; striking what is not there does nothing",
    async run({ store, advance }) {
      const { id } = await claimed(store);
      const [gone, kept] = [pointerOf(id), pointerOf(id)];
      for (const pointer of [gone, kept]) await store.bodies.note(pointer, id, CHECK_MS);
      await store.bodies.strike([gone, pointerOf(id)]);
      await store.bodies.strike([]);
      await advance(CHECK_MS);
      assert.deepEqual(await due(store), [{ pointer: kept, inUse: false }]);
    },
  },
  {
    group,
    name: "a body whose entry was purged after it was handed out as in use is not struck: it is due again, and loose",
    async run({ store, advance }) {
      const { pointer } = await completedOutside(store);
      await advance(RETENTION_MS);
      assert.deepEqual(await due(store), [{ pointer, inUse: true }]);
      assert.equal(await store.purge(10), 1);
      await store.bodies.strike([pointer]);
      assert.deepEqual(await due(store), [{ pointer, inUse: false }]);
      await store.bodies.strike([pointer]);
      await advance(AGAIN_MS);
      assert.deepEqual(await due(store), []);
    },
  },
  {
    group,
    name: "the body of a purged entry is due at once, whether it was struck before or not",
    async run({ store, advance }) {
      for (const isStruck of [true, false]) {
        const { pointer } = await completedOutside(store);
        if (isStruck) await store.bodies.strike([pointer]);
        await advance(RETENTION_MS);
        assert.equal(await store.purge(10), 1);
        assert.deepEqual(await due(store), [{ pointer, inUse: false }]);
        await store.bodies.strike([pointer]);
      }
    },
  },
  {
    group,
    name: "the body of an entry that becomes a tombstone is due at once, and only once",
    async run({ store, advance }) {
      const { id, pointer } = await completedOutside(store, { tombstoneMs: RETENTION_MS });
      await store.bodies.strike([pointer]);
      await advance(RETENTION_MS);
      assert.equal(await store.purge(10), 1);
      assert.deepEqual(await due(store), [{ pointer, inUse: false }]);
      await store.bodies.strike([pointer]);
      assert.equal((await store.read(id))?.outcomeGone, true);
      await advance(RETENTION_MS);
      assert.equal(await store.purge(10), 1);
      assert.deepEqual(await due(store), []);
    },
  },
  {
    group,
    name: "the body of an expired entry that is forgotten for a new run is due at once",
    async run({ store, advance }) {
      const outside = await completedOutside(store);
      const inside = await completedOutside(store);
      for (const { pointer } of [outside, inside]) await store.bodies.strike([pointer]);
      await advance(RETENTION_MS);
      assert.equal(await store.forgetExpired(outside.id), true);
      await store.transaction((session) => session.forgetExpired(inside.id));
      const expected = [outside, inside].map(({ pointer }) => ({ pointer, inUse: false }));
      assert.deepEqual(
        await due(store),
        expected.toSorted((a, b) => (a.pointer < b.pointer ? -1 : 1)),
      );
    },
  },
];
