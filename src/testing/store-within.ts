import assert from "node:assert/strict";
import type { NewEntry } from "../core/entry.ts";
import { OncekeyError } from "../core/errors.ts";
import type { Session, WithinTransaction } from "../core/store.ts";
import {
  completionOf,
  LIMITS,
  messageOf,
  newEntry,
  newValue,
  readEntry,
  rolledBack,
  type StoreCase,
  type StoreHarness,
} from "./store-harness.ts";

const group = "inside a transaction of the caller's";

const isUnusable = (error: unknown) => error instanceof OncekeyError && error.code === "oncekey_transaction_unusable";

const transactional = (): NewEntry => newEntry({ runKind: "transaction" });

async function lock(session: Session<unknown>, entry: NewEntry): Promise<void> {
  assert.equal(await session.lock(entry.id, entry.fingerprint, LIMITS), "owner");
  assert.equal(await session.read(entry.id), null);
}

/** A whole run: locks, a business row, the finished entry. */
function runOf({ insertRow }: StoreHarness, entry: NewEntry, value: string) {
  return async (session: Session<unknown>) => {
    await lock(session, entry);
    await insertRow(session.tx, value);
    await session.insertFinished(entry, completionOf());
  };
}

/** The caller's transaction: of the store too, but nothing of Oncekey's in it yet. */
const opened =
  (harness: StoreHarness, body: (within: WithinTransaction<unknown>, tx: unknown) => Promise<unknown>) =>
  ({ tx }: Session<unknown>) =>
    body(harness.store.within(tx), tx);

async function keptOf({ store, countRows }: StoreHarness, entry: NewEntry, value: string): Promise<unknown[]> {
  return [(await store.read(entry.id))?.state ?? null, await countRows(value)];
}

/** A run in somebody else's transaction. */
export const within: readonly StoreCase[] = [
  {
    group,
    name: "what ran there is kept when the caller commits, and gone when the caller rolls back",
    async run(harness) {
      const { store } = harness;
      const [entry, value] = [transactional(), newValue()];
      const run = opened(harness, async (inside) => {
        assert.equal(await inside.read(entry.id), null);
        await inside.transaction(runOf(harness, entry, value));
        assert.equal((await inside.read(entry.id))?.state, "succeeded");
      });
      await rolledBack(store, run);
      assert.deepEqual(await keptOf(harness, entry, value), [null, 0]);
      await store.transaction(run);
      assert.deepEqual(await keptOf(harness, entry, value), ["succeeded", 1]);
      assert.equal((await readEntry(store, entry.id)).attempt, 1);
    },
  },
  {
    group,
    name: "a throw there is raised as it is and undoes rows and messages; the same run may try again, and the caller goes on",
    async run(harness) {
      const { store, insertRow, messageIds } = harness;
      const [entry, undone, kept] = [transactional(), newValue(), newValue()];
      const thrown = new Error("of the business");
      const failing = async (session: Session<unknown>) => {
        await lock(session, entry);
        await insertRow(session.tx, undone);
        await session.send(messageOf(entry.id));
        throw thrown;
      };
      const run = opened(harness, async (inside, tx) => {
        await assert.rejects(inside.transaction(failing), (error) => error === thrown);
        await inside.transaction(runOf(harness, entry, kept));
        await insertRow(tx, kept);
      });
      await store.transaction(run);
      assert.deepEqual(await keptOf(harness, entry, kept), ["succeeded", 2]);
      assert.equal((await keptOf(harness, entry, undone))[1], 0);
      assert.deepEqual(await messageIds(), []);
    },
  },
  {
    group,
    name: "a transaction that has written, or has run another key, is refused before anything is done",
    async run(harness) {
      const { store, insertRow } = harness;
      const [entry, other, value] = [transactional(), transactional(), newValue()];
      const written = opened(harness, async (inside, tx) => {
        await insertRow(tx, value);
        await assert.rejects(inside.transaction(runOf(harness, entry, value)), isUnusable);
      });
      await store.transaction(written);
      const run = opened(harness, async (inside, tx) => {
        await inside.transaction(runOf(harness, entry, value));
        await assert.rejects(store.within(tx).transaction(runOf(harness, other, value)), isUnusable);
      });
      await store.transaction(run);
      assert.deepEqual(await keptOf(harness, entry, value), ["succeeded", 2]);
      assert.equal(await store.read(other.id), null);
    },
  },
  {
    group,
    name: "two runs at a time in one transaction are refused",
    async run(harness) {
      const [entry, value] = [transactional(), newValue()];
      const run = opened(harness, async (inside, tx) => {
        await inside.transaction(async (session) => {
          const second = harness.store.within(tx).transaction(async () => assert.fail("it must not begin"));
          await assert.rejects(second, isUnusable);
          await runOf(harness, entry, value)(session);
        });
      });
      await harness.store.transaction(run);
      assert.deepEqual(await keptOf(harness, entry, value), ["succeeded", 1]);
    },
  },
  {
    group,
    name: "what is no transaction, or is over, is refused",
    async run({ store }) {
      for (const none of [undefined, null, "tx"]) assert.throws(() => store.within(none), isUnusable);
      const over = await store.transaction(async ({ tx }) => ({ tx }));
      const refused = async () => store.within(over.tx).transaction(async () => assert.fail("it must not begin"));
      await assert.rejects(refused, isUnusable);
    },
  },
];
