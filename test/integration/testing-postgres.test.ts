/** What users are given for their tests, over the store that they have: crashes, faults, duplicates on PostgreSQL. */
import { createOncekey, ok, type Store } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import { type Crash, expectOnce, faultyProvider, faultyStore, forEachCrashPoint } from "oncekey/testing";
import type { Pool, PoolClient } from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { createDatabase, query, testPool } from "../support/postgres.ts";

const SCOPE = { tenant: "acme", client: null };
/** Short, so that the retry after a crash need not wait long for it to lapse. */
// Longer than a busy machine lets a process wait: one that loses its lease on the way never comes to its point.
const LEASE_MS = 1_000;
const PATIENCE_MS = 30_000;

let pool: Pool;
let url: string;

beforeAll(async () => {
  url = (await createDatabase()).url;
  await query(url, "CREATE TABLE booking (id text NOT NULL)");
  pool = testPool(url);
});

const bookings = async () => Number((await query(url, "SELECT count(*) AS n FROM booking"))[0]?.n);
const store = () => postgresStore(fromPg(pool));
const insert = (tx: PoolClient) => tx.query("INSERT INTO booking VALUES ('b')").then(() => {});

/** One process that books in one commit. */
async function booking(own: Store<PoolClient>, crash?: Crash) {
  const points = crash === undefined ? {} : { onPoint: crash.onPoint };
  const once = createOncekey({ store: own, leaseMs: LEASE_MS, onError: () => {}, ...points });
  const operation = once.transaction({
    name: "bookings.create",
    version: 1,
    async run({ tx, key }) {
      await insert(tx);
      return ok({ key });
    },
  });
  await once.start();
  return (key: string) => once.run(operation, { scope: SCOPE, key, input: { body: {} }, waitMs: 0 });
}

/** One process that books, asks another system, and completes. */
async function journey(own: Store<PoolClient>, psp: ReturnType<typeof faultyProvider>, crash?: Crash) {
  const points = crash === undefined ? {} : { onPoint: crash.onPoint };
  const once = createOncekey({ store: own, leaseMs: LEASE_MS, onError: () => {}, ...points });
  const operation = once.phases({
    name: "journeys.create",
    version: 1,
    maxAttempts: 1_000,
    async run(op) {
      await op.phase("booked", ({ tx }) => insert(tx));
      const recover = { find: psp.find, cancel: psp.cancel };
      const { id } = await op.call("pay", { timeoutMs: 1_000, request: {}, run: psp.call, recover });
      return op.complete(async () => ok({ id }));
    },
  });
  await once.start();
  return (key: string) => once.run(operation, { scope: SCOPE, key, input: { body: {} }, waitMs: 0 });
}

describe("on PostgreSQL", () => {
  it("wherever a process dies in a transaction, its retry books once", async () => {
    await forEachCrashPoint({ runKind: "transaction" }, async (crash) => {
      const dies = { call: await booking(crash.store(store()), crash), at: crash };
      await expectOnce({ call: await booking(store()), dies, effects: bookings, patienceMs: PATIENCE_MS });
    });
  });

  it("wherever a process dies between phases, its retry books and pays once", async () => {
    const steps = [{ phase: "booked" }, { call: "pay", intent: true }] as const;
    await forEachCrashPoint({ runKind: "phases", steps }, async (crash) => {
      const psp = faultyProvider({ dedupes: false });
      const dies = { call: await journey(crash.store(store()), psp, crash), at: crash };
      await expectOnce({ call: await journey(store(), psp), dies, effects: bookings, patienceMs: PATIENCE_MS });
      expect(psp.effects).toHaveLength(1);
    });
  });

  it.each([11, 12, 13])("books once whatever fails on the way to the database (seed %i)", async (seed) => {
    const faulty = faultyStore(store(), { seed, percent: 20 });
    const call = await booking(faulty.store);
    await expectOnce({ call, effects: bookings, faults: true, patienceMs: PATIENCE_MS });
    expect(faulty.happened.length).toBeGreaterThan(0);
  });

  it.each([21, 22, 23])("books and pays once whatever fails between phases (seed %i)", async (seed) => {
    const psp = faultyProvider({ dedupes: false });
    const faulty = faultyStore(store(), { seed, percent: 15 });
    const before = await bookings();
    const call = await journey(faulty.store, psp);
    await expectOnce({ call, effects: bookings, faults: true, patienceMs: PATIENCE_MS });
    expect(psp.effects).toHaveLength((await bookings()) - before);
    expect(faulty.happened.length).toBeGreaterThan(0);
  });
});
