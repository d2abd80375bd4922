import assert from "node:assert/strict";
import type { StoredEntry } from "../core/entry.ts";
import type { Store } from "../core/store.ts";
import {
  assertBytes,
  claimed,
  completionOf,
  intentOf,
  LEASE_MS,
  LIMITS,
  messageOf,
  newFence,
  newValue,
  readEntry,
  recordOf,
  rolledBack,
  type StoreCase,
  seen,
} from "./store-harness.ts";

const group = "phases, calls and intents";

/** What is recorded on the way, and by whom. */
export const recording: readonly StoreCase[] = [
  {
    group,
    name: "a phase and its business rows are committed together, and the recovery point moves",
    async run({ store, insertRow, countRows }) {
      const { id, fence } = await claimed(store);
      const value = newValue();
      await store.transaction(async (session) => {
        assert.equal(await session.enter(id, fence, LIMITS), true);
        await insertRow(session.tx, value);
        assert.equal(await session.recordPhase(id, fence, recordOf(0, "charge_created")), true);
      });
      assert.equal(await countRows(value), 1);
      assert.equal((await readEntry(store, id)).recoveryPoint, "charge_created");
      assert.equal((await store.journal(id)).records.length, 1);
    },
  },
  {
    group,
    name: "a phase that throws leaves neither its business rows nor its record",
    async run({ store, insertRow, countRows }) {
      const { id, fence } = await claimed(store);
      const value = newValue();
      await rolledBack(store, async (session) => {
        await insertRow(session.tx, value);
        assert.equal(await session.recordPhase(id, fence, recordOf(0, "charge_created")), true);
      });
      assert.equal(await countRows(value), 0);
      assert.equal((await readEntry(store, id)).recoveryPoint, null);
      assert.deepEqual((await store.journal(id)).records, []);
    },
  },
  {
    group,
    name: "a worker that lost its entry can neither enter a phase nor record one",
    async run({ store, advance, insertRow, countRows }) {
      const { id, fence } = await claimed(store);
      const owner = await takenFrom(store, advance, id);
      const value = newValue();
      const matched = await rolledBack(store, async (session) => {
        const entered = await session.enter(id, fence, LIMITS);
        await insertRow(session.tx, value);
        return [entered, await session.recordPhase(id, fence, recordOf(0, "charge_created"))];
      });
      assert.deepEqual(matched, [false, false]);
      assert.equal(await countRows(value), 0);
      assert.deepEqual((await store.journal(id)).records, []);
      assert.equal(await store.transaction((session) => session.enter(id, owner.fence, LIMITS)), true);
    },
  },
  {
    group,
    name: "the last phase commits business rows, messages and outcome together",
    async run({ store, insertRow, countRows, messageIds }) {
      const { id, fence } = await claimed(store);
      const value = newValue();
      const message = messageOf(id);
      await store.transaction(async (session) => {
        await insertRow(session.tx, value);
        await session.send(message);
        assert.equal(await session.complete(id, fence, completionOf()), true);
      });
      assert.equal(await countRows(value), 1);
      assert.deepEqual(await messageIds(), [message.id]);
      assert.equal((await readEntry(store, id)).state, "succeeded");
    },
  },
  {
    group,
    name: "records are read in the order of their positions, byte for byte",
    async run({ store }) {
      const { id, fence } = await claimed(store);
      const records = [
        { ...recordOf(0, "charge_created"), value: Uint8Array.from({ length: 256 }, (_, index) => index) },
        { ...recordOf(1, "authorize", "call"), value: new Uint8Array(0) },
        recordOf(2, "settled"),
      ];
      for (const record of records) {
        const recorded =
          record.kind === "call"
            ? await store.recordCall(id, fence, record)
            : await store.transaction((session) => session.recordPhase(id, fence, record));
        assert.equal(recorded, true);
      }
      const journal = await store.journal(id);
      assert.deepEqual(
        journal.records.map(({ position, kind, name }) => ({ position, kind, name })),
        records.map(({ position, kind, name }) => ({ position, kind, name })),
      );
      for (const [index, record] of records.entries()) assertBytes(journal.records[index]?.value, record.value);
      assert.equal((await readEntry(store, id)).recoveryPoint, "settled");
    },
  },
  {
    group,
    name: "the result of a call moves the recovery point",
    async run({ store }) {
      const { id, fence } = await claimed(store);
      assert.equal(await store.recordCall(id, fence, recordOf(0, "authorize", "call")), true);
      assert.equal((await readEntry(store, id)).recoveryPoint, "authorize");
    },
  },
  {
    group,
    name: "a result sent again, because its answer was lost, is recorded once",
    async run({ store }) {
      const { id, fence } = await claimed(store);
      const record = recordOf(0, "authorize", "call");
      assert.equal(await store.recordCall(id, fence, record), true);
      assert.equal(await store.recordCall(id, fence, record), true);
      assert.equal((await store.journal(id)).records.length, 1);
    },
  },
  {
    group,
    name: "another result under a position that is taken is refused, and the first one stays",
    async run({ store }) {
      const { id, fence } = await claimed(store);
      assert.equal(await store.recordCall(id, fence, recordOf(0, "authorize", "call")), true);
      await assert.rejects(store.recordCall(id, fence, recordOf(0, "capture", "call")));
      assert.deepEqual(
        (await store.journal(id)).records.map((record) => record.name),
        ["authorize"],
      );
      assert.equal((await readEntry(store, id)).recoveryPoint, "authorize");
    },
  },
  {
    group,
    name: "an intent is stored open, as it was given, with its age",
    async run({ store, advance }) {
      const { id, fence } = await claimed(store);
      const intent = intentOf("authorize");
      const opened = await store.openIntent(id, fence, intent);
      await advance(60_000);
      const [stored] = (await store.journal(id)).intents;
      for (const read of [opened, stored]) {
        assert.equal(read?.state, "open");
        assert.equal(read?.call, intent.call);
        assert.equal(read?.generation, 1);
        assert.equal(read?.derivedKey, intent.derivedKey);
        assertBytes(read?.requestDigest, intent.requestDigest);
      }
      assert.ok(opened && opened.ageMs >= 0 && opened.ageMs < 60_000);
      assert.ok(stored && stored.ageMs >= 60_000);
    },
  },
  {
    group,
    name: "an intent opened again is the same intent, and its age restarts",
    async run({ store, advance }) {
      const { id, fence } = await claimed(store);
      const intent = intentOf("authorize");
      await store.openIntent(id, fence, intent);
      await advance(60_000);
      const again = await store.openIntent(id, fence, intent);
      assert.ok(again && again.ageMs < 60_000);
      const { intents } = await store.journal(id);
      assert.equal(intents.length, 1);
      assert.ok(intents[0] && intents[0].state === "open" && intents[0].ageMs < 60_000);
    },
  },
  {
    group,
    name: "a cancelled generation stays cancelled beside the next one",
    async run({ store }) {
      const { id, fence } = await claimed(store);
      await store.openIntent(id, fence, intentOf("authorize", 1));
      assert.equal(await store.cancelIntent(id, fence, "authorize", 1), true);
      assert.ok(await store.openIntent(id, fence, intentOf("authorize", 2)));
      assert.deepEqual(await intentStates(store, id), { "authorize 1": "cancelled", "authorize 2": "open" });
    },
  },
  {
    group,
    name: "the result of a call settles its open intent, and no other",
    async run({ store }) {
      const { id, fence } = await claimed(store);
      await store.openIntent(id, fence, intentOf("authorize", 1));
      await store.cancelIntent(id, fence, "authorize", 1);
      await store.openIntent(id, fence, intentOf("authorize", 2));
      await store.openIntent(id, fence, intentOf("capture", 1));
      assert.equal(await store.recordCall(id, fence, recordOf(0, "authorize", "call")), true);
      const expected = { "authorize 1": "cancelled", "authorize 2": "settled", "capture 1": "open" };
      assert.deepEqual(await intentStates(store, id), expected);
    },
  },
  {
    group,
    name: "a worker that lost its entry can neither open, cancel nor settle an intent",
    async run({ store, advance }) {
      const { id, fence } = await claimed(store);
      await store.openIntent(id, fence, intentOf("authorize"));
      await takenFrom(store, advance, id);
      assert.equal(await store.openIntent(id, fence, intentOf("authorize")), null);
      assert.equal(await store.openIntent(id, fence, intentOf("capture")), null);
      assert.equal(await store.cancelIntent(id, fence, "authorize", 1), false);
      assert.equal(await store.recordCall(id, fence, recordOf(0, "authorize", "call")), false);
      assert.deepEqual(await intentStates(store, id), { "authorize 1": "open" });
      assert.deepEqual((await store.journal(id)).records, []);
      assert.equal((await readEntry(store, id)).recoveryPoint, null);
    },
  },
  {
    group,
    name: "nothing is recorded for an entry that is finished",
    async run({ store }) {
      const { id, fence } = await claimed(store);
      await store.complete(id, fence, completionOf());
      assert.equal(await store.openIntent(id, fence, intentOf("authorize")), null);
      assert.equal(await store.recordCall(id, fence, recordOf(0, "authorize", "call")), false);
      const phase = await rolledBack(store, (session) => session.recordPhase(id, fence, recordOf(0, "late")));
      assert.equal(phase, false);
      assert.deepEqual(await store.journal(id), { records: [], intents: [] });
    },
  },
  {
    group,
    name: "records and intents stay when the entry is taken over",
    async run({ store, advance }) {
      const { id, fence } = await claimed(store);
      await store.recordCall(id, fence, recordOf(0, "authorize", "call"));
      await store.openIntent(id, fence, intentOf("capture"));
      const owner = await takenFrom(store, advance, id);
      assert.equal((await store.journal(id)).records.length, 1);
      assert.deepEqual(await intentStates(store, id), { "capture 1": "open" });
      assert.equal(await store.recordCall(id, owner.fence, recordOf(1, "capture", "call")), true);
      assert.deepEqual(await intentStates(store, id), { "capture 1": "settled" });
    },
  },
];

async function takenFrom(store: Store, advance: (ms: number) => Promise<void>, id: Uint8Array): Promise<StoredEntry> {
  await advance(LEASE_MS);
  const taken = await store.takeOver(id, seen(await readEntry(store, id)), newFence(), LEASE_MS);
  assert.ok(taken);
  return taken;
}

async function intentStates(store: Store, id: Uint8Array): Promise<Record<string, string>> {
  const { intents } = await store.journal(id);
  return Object.fromEntries(intents.map(({ call, generation, state }) => [`${call} ${generation}`, state]));
}
