import assert from "node:assert/strict";
import { type Session, StoreFailure } from "../core/store.ts";
import {
  assertKeptFor,
  claimed,
  completionOf,
  finished,
  LIMITS,
  messageOf,
  newEntry,
  newFingerprint,
  newValue,
  outcomeOf,
  RETENTION_MS,
  readEntry,
  rolledBack,
  type StoreCase,
  settledRace,
  whileOpen,
} from "./store-harness.ts";

const group = "one-commit transactions";
/** Round trips within which a server has certainly let go of what a failed transaction held. */
const MOST_TRIES = 200;

/** The entry and the business rows in one transaction. */
export const transactions: readonly StoreCase[] = [
  {
    group,
    name: "the answer of a transaction's body is the transaction's",
    run: async ({ store }) => assert.equal(await store.transaction(async () => 42), 42),
  },
  {
    group,
    name: "the first to lock is the owner, an exact duplicate is busy, another payload is a mismatch",
    async run({ store }) {
      const { id } = newEntry();
      const digest = newFingerprint();
      const first = (session: Session<unknown>) => session.lock(id, digest, LIMITS);
      const lock = (other: Uint8Array, by: Uint8Array) =>
        rolledBack(store, (session) => session.lock(other, by, LIMITS));
      await whileOpen(store, first, async ({ result }) => {
        assert.equal(result, "owner");
        assert.equal(await lock(id, digest), "busy");
        assert.equal(await lock(id, newFingerprint()), "mismatch");
        assert.equal(await lock(newEntry().id, digest), "owner");
      });
    },
  },
  {
    group,
    name: "a look tells whether an identity is locked, and hinders nobody who locks it",
    async run({ store }) {
      const { id } = newEntry();
      const lock = (session: Session<unknown>) => session.lock(id, newFingerprint(), LIMITS);
      assert.equal(await store.running(id), false);
      await whileOpen(store, lock, async () => {
        assert.equal(await store.running(id), true);
        assert.equal(await store.running(newEntry().id), false);
      });
      const looks = Array.from({ length: 20 }, () => store.running(id));
      assert.equal(await store.transaction(lock), "owner");
      await Promise.all(looks);
      assert.equal(await store.running(id), false);
    },
  },
  {
    group,
    name: "the locks are free again after a commit and after a rollback",
    async run({ store }) {
      const { id } = newEntry();
      const lock = (session: Session<unknown>) => session.lock(id, newFingerprint(), LIMITS);
      assert.equal(await store.transaction(lock), "owner");
      assert.equal(await rolledBack(store, lock), "owner");
      assert.equal(await store.transaction(lock), "owner");
    },
  },
  {
    group,
    name: "the finished entry and the business rows are committed together, and seen by nobody before",
    async run({ store, insertRow, countRows }) {
      const entry = newEntry({ runKind: "transaction" });
      const value = newValue();
      const body = async (session: Session<unknown>) => {
        assert.equal(await session.lock(entry.id, entry.fingerprint, LIMITS), "owner");
        assert.equal(await session.read(entry.id), null);
        await insertRow(session.tx, value);
        await session.insertFinished(entry, completionOf());
        return await session.read(entry.id);
      };
      await whileOpen(store, body, async ({ result, commit }) => {
        assert.equal(result?.state, "succeeded");
        assert.deepEqual([await store.read(entry.id), await countRows(value)], [null, 0]);
        await commit();
      });
      assert.equal(await countRows(value), 1);
      const stored = await readEntry(store, entry.id);
      assert.equal(stored.state, "succeeded");
      assert.equal(stored.attempt, 1);
      assert.equal(stored.runKind, "transaction");
      assert.equal(stored.outcome?.status, 201);
      assertKeptFor(stored, RETENTION_MS);
    },
  },
  {
    group,
    name: "a refusal is stored as one, with its tombstone",
    async run({ store, advance }) {
      const entry = newEntry({ runKind: "transaction", input: null });
      const refusal = completionOf({ state: "failed", outcome: outcomeOf({ status: 422 }), tombstoneMs: 60_000 });
      await store.transaction((session) => session.insertFinished(entry, refusal));
      assert.equal((await readEntry(store, entry.id)).state, "failed");
      await advance(RETENTION_MS);
      assert.equal((await readEntry(store, entry.id)).clock.tombstoned, true);
    },
  },
  {
    group,
    name: "a throw rolls back entry, business rows and messages, and is raised as it is",
    async run({ store, insertRow, countRows, messageIds }) {
      const entry = newEntry({ runKind: "transaction" });
      const value = newValue();
      await rolledBack(store, async (session) => {
        await insertRow(session.tx, value);
        await session.send(messageOf(entry.id));
        await session.insertFinished(entry, completionOf());
      });
      assert.equal(await store.read(entry.id), null);
      assert.equal(await countRows(value), 0);
      assert.deepEqual(await messageIds(), []);
    },
  },
  {
    group,
    name: "a message is kept by the commit of its transaction",
    async run({ store, messageIds }) {
      const { id } = newEntry();
      const messages = [messageOf(id), { ...messageOf(id), key: "k", orderBy: "inv_1", delayMs: 1_000 }];
      await store.transaction(async (session) => {
        for (const message of messages) await session.send(message);
      });
      assert.deepEqual((await messageIds()).sort(), messages.map((message) => message.id).sort());
    },
  },
  {
    group,
    name: "a second finished entry of one identity is a conflict, and its business rows are rolled back",
    async run({ store, insertRow, countRows }) {
      const { id } = await finished(store);
      const value = newValue();
      const second = store.transaction(async (session) => {
        await insertRow(session.tx, value);
        await session.insertFinished(newEntry({ id }), completionOf());
      });
      await assert.rejects(second, isConflict);
      assert.equal(await countRows(value), 0);
    },
  },
  {
    group,
    name: "a transaction whose statement failed cannot commit, even where the error was swallowed",
    async run({ store, insertRow, countRows }) {
      const { id } = await claimed(store);
      const value = newValue();
      const swallowing = store.transaction(async (session) => {
        await insertRow(session.tx, value);
        await session.insertFinished(newEntry({ id }), completionOf()).catch(() => {});
      });
      await assert.rejects(swallowing, StoreFailure);
      assert.equal(await countRows(value), 0);
    },
  },
  {
    group,
    name: "a transaction whose statement failed lets go of its locks at once, before it rolls back",
    async run({ store }) {
      const { id } = await claimed(store);
      const lock = (session: Session<unknown>) => session.lock(id, newFingerprint(), LIMITS);
      const failing = async (session: Session<unknown>) => {
        assert.equal(await lock(session), "owner");
        await assert.rejects(session.insertFinished(newEntry({ id }), completionOf()), isConflict);
      };
      // A server tells of the error a moment before it lets go: asked again, while the transaction stays open.
      const asked = async () => {
        for (let tries = 0; tries < MOST_TRIES; tries++)
          if ((await rolledBack(store, lock)) === "owner") return "owner";
        return "still locked";
      };
      await whileOpen(store, failing, async () => assert.equal(await asked(), "owner"));
    },
  },
  {
    group,
    name: "of three transactions that finish one identity without locks one commits and the others are conflicts",
    async run({ store, insertRow, countRows }) {
      const { id } = newEntry();
      const value = newValue();
      const finish = () =>
        settledRace(store, async (session) => {
          await insertRow(session.tx, value);
          await session.insertFinished(newEntry({ id }), completionOf());
          return "committed";
        });
      const ended = await Promise.all([finish(), finish(), finish()]);
      assert.deepEqual(ended.filter(Boolean), ["committed"]);
      assert.equal(await countRows(value), 1);
    },
  },
  {
    group,
    name: "of 16 transactions that lock, read and finish one identity exactly one runs",
    async run({ store, insertRow, countRows }) {
      const entry = newEntry({ runKind: "transaction" });
      const value = newValue();
      const attempt = () =>
        settledRace(store, async (session) => {
          const lock = await session.lock(entry.id, entry.fingerprint, LIMITS);
          if (lock !== "owner" || (await session.read(entry.id)) !== null) return null;
          await insertRow(session.tx, value);
          await session.insertFinished(newEntry({ id: entry.id }), completionOf());
          return "committed";
        });
      const ended = await Promise.all(Array.from({ length: 16 }, attempt));
      assert.deepEqual(ended.filter(Boolean), ["committed"]);
      assert.equal(await countRows(value), 1);
    },
  },
  {
    group,
    name: "a transaction that has the lock reads what was committed before it got it",
    async run({ store }) {
      const entry = newEntry({ runKind: "transaction" });
      const found = await store.transaction(async (session) => {
        await store.claim(entry, 60_000);
        assert.equal(await session.lock(entry.id, entry.fingerprint, LIMITS), "owner");
        return await session.read(entry.id);
      });
      assert.equal(found?.state, "in_progress");
    },
  },
  {
    group,
    name: "an expired entry is replaced within one transaction, and stays where that rolls back",
    async run({ store, advance }) {
      const { id } = await finished(store);
      await advance(RETENTION_MS);
      const replace = async (session: Session<unknown>) => {
        await session.forgetExpired(id);
        assert.equal(await session.read(id), null);
        await session.insertFinished(newEntry({ id, runKind: "transaction" }), completionOf());
      };
      await rolledBack(store, replace);
      assert.equal((await readEntry(store, id)).clock.expired, true);
      await store.transaction(replace);
      const replaced = await readEntry(store, id);
      assert.equal(replaced.clock.expired, false);
      assert.equal(replaced.runKind, "transaction");
    },
  },
  {
    group,
    name: "a transaction forgets no entry whose retention is not over",
    async run({ store }) {
      const running = await claimed(store);
      const done = await finished(store);
      await store.transaction(async (session) => {
        await session.forgetExpired(running.id);
        await session.forgetExpired(done.id);
      });
      assert.equal((await readEntry(store, running.id)).state, "in_progress");
      assert.equal((await readEntry(store, done.id)).state, "succeeded");
    },
  },
];

function isConflict(error: unknown): boolean {
  return error instanceof StoreFailure && error.kind === "conflict";
}
