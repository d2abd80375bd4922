import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { deliveryDigest, type NewDelivery } from "../core/delivery.ts";
import { type Session, type Store, StoreFailure } from "../core/store.ts";
import {
  assertBytes,
  LIMITS,
  newFence,
  newValue,
  rolledBack,
  type StoreCase,
  settledRace,
  whileOpen,
} from "./store-harness.ts";

const group = "arrivals";

const KEEP_MS = 3_600_000;

/** A delivery that no other case has. */
function newDelivery(overrides: Partial<Omit<NewDelivery, "digest" | "delivery">> = {}): NewDelivery {
  const delivery = { tenant: "acme", source: "suite", id: randomBytes(8).toString("hex") };
  return { digest: deliveryDigest(delivery), delivery, value: null, keepMs: KEEP_MS, ...overrides };
}

/** Takes deliveries in, as the engine does, without an effect. */
function accepted(store: Store, ...deliveries: readonly NewDelivery[]): Promise<unknown> {
  return settledRace(store, async (session) => {
    await session.tryLocks(digestsOf(deliveries), LIMITS);
    await session.accept(deliveries);
  });
}

const digestsOf = (deliveries: readonly NewDelivery[]): Uint8Array[] => deliveries.map(({ digest }) => digest);

const hexOf = (known: readonly { digest: Uint8Array }[]): string[] =>
  known.map(({ digest }) => Buffer.from(digest).toString("hex")).toSorted();

const isConflict = (error: unknown): boolean => error instanceof StoreFailure && error.kind === "conflict";

export const arrivals: readonly StoreCase[] = [
  {
    group,
    name: "an accepted delivery is remembered with its value, inside transactions and outside",
    async run({ store }) {
      const value = new Uint8Array([1, 0, 255]);
      const [valued, plain, unseen] = [newDelivery({ value }), newDelivery(), newDelivery()];
      await accepted(store, valued, plain);
      const digests = digestsOf([valued, unseen, plain]);
      const inside = await store.transaction((session) => session.deliveries(digests));
      for (const known of [inside, await store.deliveries(digests)]) {
        assert.deepEqual(hexOf(known), hexOf([valued, plain]));
        for (const { digest, value: actual, receivedAt } of known) {
          assertBytes(actual, hexOf([{ digest }])[0] === hexOf([valued])[0] ? value : null);
          assert.ok(receivedAt instanceof Date && !Number.isNaN(receivedAt.getTime()));
        }
      }
      assert.deepEqual(await store.deliveries([]), []);
    },
  },
  {
    group,
    name: "a delivery is forgotten before its time with what takes its place, or with a rollback not at all",
    async run({ store }) {
      const [old, next, other] = [newDelivery(), newDelivery(), newDelivery()];
      const all = digestsOf([old, next, other]);
      await accepted(store, old, other);
      const replace = async (session: Session<unknown>) => {
        await session.tryLocks(all, LIMITS);
        await session.forget([old.digest, newDelivery().digest]);
        await session.accept([next]);
      };
      await rolledBack(store, replace);
      assert.deepEqual(hexOf(await store.deliveries(all)), hexOf([old, other]));
      await store.transaction(async (session) => {
        await replace(session);
        assert.deepEqual(hexOf(await session.deliveries(all)), hexOf([next, other]));
      });
      assert.deepEqual(hexOf(await store.deliveries(all)), hexOf([next, other]));
      await accepted(store, old);
      assert.deepEqual(hexOf(await store.deliveries(all)), hexOf([old, next, other]));
    },
  },
  {
    group,
    name: "a delivery of a transaction that was rolled back is not remembered",
    async run({ store }) {
      const delivery = newDelivery();
      await rolledBack(store, async (session) => {
        await session.tryLocks([delivery.digest], LIMITS);
        await session.accept([delivery]);
      });
      assert.deepEqual(await store.deliveries([delivery.digest]), []);
      await accepted(store, delivery);
      assert.equal((await store.deliveries([delivery.digest])).length, 1);
    },
  },
  {
    group,
    name: "of a batch with one delivery that is known already nothing is accepted",
    async run({ store, insertRow, countRows }) {
      const [known, fresh] = [newDelivery(), newDelivery()];
      await accepted(store, known);
      const value = newValue();
      const batch = store.transaction(async (session) => {
        await session.tryLocks(digestsOf([fresh, known]), LIMITS);
        await insertRow(session.tx, value);
        await session.accept([fresh, known]);
      });
      await assert.rejects(batch, isConflict);
      assert.equal(await countRows(value), 0);
      assert.deepEqual(await store.deliveries([fresh.digest]), []);
    },
  },
  {
    group,
    name: "a delivery that need not be remembered any more is absent, and is accepted anew",
    async run({ store, advance }) {
      const { digest, delivery } = newDelivery();
      await accepted(store, { digest, delivery, value: new Uint8Array([1]), keepMs: 60_000 });
      await advance(59_000);
      assert.equal((await store.deliveries([digest])).length, 1);
      await advance(1_000);
      assert.deepEqual(await store.deliveries([digest]), []);
      assert.deepEqual(await store.transaction((session) => session.deliveries([digest])), []);
      await accepted(store, { digest, delivery, value: new Uint8Array([2]), keepMs: 60_000 });
      const [known] = await store.deliveries([digest]);
      assertBytes(known?.value, new Uint8Array([2]));
      await advance(59_000);
      assert.equal((await store.deliveries([digest])).length, 1);
    },
  },
  {
    group,
    name: "of fifty arrivals of one delivery that race, one has an effect",
    timeoutMs: 60_000,
    async run({ store, insertRow, countRows }) {
      const delivery = newDelivery();
      const value = newValue();
      const race = async (session: Session<unknown>): Promise<boolean> => {
        const [isFree] = await session.tryLocks([delivery.digest], LIMITS);
        if (!isFree || (await session.deliveries([delivery.digest])).length > 0) return false;
        await insertRow(session.tx, value);
        await session.accept([delivery]);
        return true;
      };
      const results = await Promise.all(Array.from({ length: 50 }, () => settledRace(store, race)));
      assert.equal(results.filter((result) => result === true).length, 1);
      assert.equal(await countRows(value), 1);
    },
  },
  {
    group,
    name: "even without looking at the locks, of arrivals that race one is accepted",
    timeoutMs: 60_000,
    async run({ store, insertRow, countRows }) {
      const delivery = newDelivery();
      const value = newValue();
      const race = async (session: Session<unknown>): Promise<boolean> => {
        await session.tryLocks([delivery.digest], LIMITS);
        await insertRow(session.tx, value);
        await session.accept([delivery]);
        return true;
      };
      const results = await Promise.all(Array.from({ length: 10 }, () => settledRace(store, race)));
      assert.equal(results.filter((result) => result === true).length, 1);
      assert.equal(await countRows(value), 1);
    },
  },
  {
    group,
    name: "a lock that another transaction has is refused at once, in the place of its digest, and free after its end",
    async run({ store }) {
      const [a, b, c] = [newFence(), newFence(), newFence()].map((bytes) => new Uint8Array([...bytes, ...bytes]));
      assert.ok(a && b && c);
      const tryAll = (digests: readonly Uint8Array[]) =>
        settledRace(store, (session) => session.tryLocks(digests, LIMITS));
      await whileOpen(
        store,
        (session) => session.tryLocks([b], LIMITS),
        async ({ result, session, commit }) => {
          assert.deepEqual(result, [true]);
          assert.deepEqual(await tryAll([a, b, c]), [true, false, true]);
          assert.deepEqual(await tryAll([b]), [false]);
          assert.deepEqual(await session.tryLocks([b, a], LIMITS), [true, true]);
          await commit();
        },
      );
      assert.deepEqual(await tryAll([c, b, a]), [true, true, true]);
    },
  },
  {
    group,
    name: "the purge forgets deliveries that need not be remembered, at most as many as asked, and no others",
    async run({ store, advance }) {
      const over = [newDelivery({ keepMs: 60_000 }), newDelivery({ keepMs: 60_000 }), newDelivery({ keepMs: 60_000 })];
      const kept = newDelivery();
      await accepted(store, ...over, kept);
      assert.equal(await store.purgeDeliveries(10), 0);
      await advance(60_000);
      assert.equal(await store.purgeDeliveries(2), 2);
      assert.equal(await store.purgeDeliveries(10), 1);
      assert.equal(await store.purgeDeliveries(10), 0);
      assert.deepEqual(hexOf(await store.deliveries(digestsOf([...over, kept]))), hexOf([kept]));
    },
  },
];
