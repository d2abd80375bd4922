import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { producerDigest, subjectDigest } from "../core/delivery.ts";
import type { SequenceNumber } from "../core/sequence.ts";
import { type Session, type Store, StoreFailure } from "../core/store.ts";
import { LIMITS, newValue, rolledBack, type StoreCase, settledRace } from "./store-harness.ts";

const group = "producers and subjects";

const isConflict = (error: unknown): boolean => error instanceof StoreFailure && error.kind === "conflict";

/** A producer that no other case has, and how to move it on. */
function newProducer() {
  const producer = { tenant: "acme", source: "suite", producer: randomBytes(8).toString("hex") };
  const digest = producerDigest(producer);
  const move = async (session: Session<unknown>, from: SequenceNumber | null, to: SequenceNumber) => {
    await session.tryLocks([digest], LIMITS);
    await session.moveProducer(digest, producer, from, to);
  };
  const last = (store: Store) => store.transaction((session) => session.producer(digest));
  return { digest, move, last };
}

const numbered = (epoch: number, sequence: number): SequenceNumber => ({
  epoch: BigInt(epoch),
  sequence: BigInt(sequence),
});

/** A subject that no other case has, and how to move it on. */
function newSubject() {
  const subject = { tenant: "acme", source: "suite", subject: randomBytes(8).toString("hex") };
  const digest = subjectDigest(subject);
  return (store: Store, version: bigint) =>
    settledRace(store, (session) => session.moveSubject(digest, subject, version));
}

export const numberedArrivals: readonly StoreCase[] = [
  {
    group,
    name: "a producer moves on from the number that was last seen, and from no other",
    async run({ store }) {
      const { move, last } = newProducer();
      assert.equal(await last(store), null);
      const big = { epoch: 0n, sequence: 9_007_199_254_740_993n };
      const steps = [null, numbered(0, 0), numbered(0, 1), big, numbered(7, 0)];
      for (const [index, to] of steps.slice(1).entries()) {
        const from = steps[index] ?? null;
        await store.transaction((session) => move(session, from, to as SequenceNumber));
        assert.deepEqual(await last(store), to);
      }
      for (const stale of [null, numbered(0, 0), numbered(6, 0), numbered(7, 1)]) {
        const moving = store.transaction((session) => move(session, stale, numbered(8, 0)));
        await assert.rejects(moving, isConflict);
      }
      assert.deepEqual(await last(store), numbered(7, 0));
    },
  },
  {
    group,
    name: "a move that is rolled back leaves the producer where it was",
    async run({ store }) {
      const { move, last } = newProducer();
      await rolledBack(store, (session) => move(session, null, numbered(0, 0)));
      assert.equal(await last(store), null);
      await store.transaction((session) => move(session, null, numbered(0, 0)));
      await rolledBack(store, (session) => move(session, numbered(0, 0), numbered(0, 1)));
      assert.deepEqual(await last(store), numbered(0, 0));
    },
  },
  {
    group,
    name: "of moves of one producer that race from the same number, one counts",
    timeoutMs: 60_000,
    async run({ store, insertRow, countRows }) {
      const { move, last } = newProducer();
      for (const [from, to] of [
        [null, numbered(0, 0)],
        [numbered(0, 0), numbered(0, 1)],
      ] as const) {
        const value = newValue();
        const race = async (session: Session<unknown>): Promise<boolean> => {
          await insertRow(session.tx, value);
          await move(session, from, to);
          return true;
        };
        const results = await Promise.all(Array.from({ length: 10 }, () => settledRace(store, race)));
        assert.equal(results.filter((result) => result === true).length, 1);
        assert.equal(await countRows(value), 1);
        assert.deepEqual(await last(store), to);
      }
    },
  },
  {
    group,
    name: "a subject moves to newer versions only: neither to an equal one nor to an older one",
    async run({ store }) {
      const moveTo = newSubject();
      for (const [version, moved] of [
        [-5n, true],
        [3n, true],
        [3n, false],
        [2n, false],
        [9_007_199_254_740_993n, true],
        [9_007_199_254_740_992n, false],
      ] as const) {
        assert.equal(await moveTo(store, version), moved, `version ${version}`);
      }
    },
  },
  {
    group,
    name: "a subject's move that is rolled back does not count",
    async run({ store }) {
      const subject = { tenant: "acme", source: "suite", subject: newValue() };
      const move = (session: Session<unknown>) => session.moveSubject(subjectDigest(subject), subject, 5n);
      assert.equal(await rolledBack(store, move), true);
      assert.equal(await store.transaction(move), true);
      assert.equal(await store.transaction(move), false);
    },
  },
  {
    group,
    name: "of versions of a subject that race, the newest is the last",
    timeoutMs: 60_000,
    async run({ store }) {
      const moveTo = newSubject();
      const versions = [4n, 9n, 1n, 7n, 2n, 8n];
      const moved = await Promise.all(versions.map((version) => moveTo(store, version)));
      assert.equal(moved[1], true);
      assert.equal(await moveTo(store, 9n), false);
      assert.equal(await moveTo(store, 10n), true);
    },
  },
];
