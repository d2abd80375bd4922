import { randomBytes } from "node:crypto";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore, storeStatus } from "oncekey/postgres";
import type pg from "pg";
import { describe, expect, it } from "vitest";
import { createDatabase, passTime, query, testPool } from "../support/postgres.ts";
import { completion, limits, newEntry } from "../support/store-values.ts";

type PgStore = ReturnType<typeof postgresStore<pg.PoolClient>>;

const TARGET = { operation: "invoices.create", runKind: "phases" as const, operationVersion: 1 };
const LEASE_MS = 60_000;
const input = new Uint8Array([1]);

async function database() {
  const { url } = await createDatabase();
  return { url, store: postgresStore(fromPg(testPool(url))) };
}

describe("2 sweepers and 10 retries on lapsed entries whose owners keep dying", () => {
  const ENTRIES = 300;
  const LAPSED = `
    INSERT INTO oncekey.entry (id, fence, seed, fingerprint, state, run_kind, tenant, operation, key, operation_version,
      created_at, lease_until, input)
    SELECT sha256(n::text::bytea), uuid_send(gen_random_uuid()), uuid_send(gen_random_uuid()), '\\x01', 'in_progress',
      'phases', 'acme', 'invoices.create', n::text, 1, now(), now() - n * interval '1 millisecond', '\\x01'
    FROM generate_series(1, ${ENTRIES}) AS n`;
  // A second owner at work at the same time would meet the primary key.
  const AT_WORK = "CREATE TABLE at_work (id bytea PRIMARY KEY)";
  const EFFECT = "CREATE TABLE effect (id bytea NOT NULL)";

  interface Taken {
    readonly id: Uint8Array;
    readonly fence: Uint8Array;
  }

  async function world() {
    const { url } = await createDatabase();
    await query(url, LAPSED, AT_WORK, EFFECT);
    const takes: string[] = [];
    const ids = (await query(url, "SELECT id FROM oncekey.entry")).map(({ id }) => new Uint8Array(id as Buffer));
    const worker = () => postgresStore(fromPg(testPool(url, { max: 2 })));
    return { url, ids, takes, worker };
  }

  /** Does the work of one attempt, fenced like a phase and a completion; every third owner dies instead. */
  async function resume(store: PgStore, { id, fence }: Taken, takes: string[]): Promise<void> {
    takes.push(Buffer.from(fence).toString("hex"));
    const record = { position: 0, kind: "phase" as const, name: "begun", value: input };
    const isOurs = await store.transaction(async (session) => {
      if (!(await session.enter(id, fence, limits))) return false;
      await session.tx.query("INSERT INTO at_work VALUES ($1)", [Buffer.from(id)]);
      return session.recordPhase(id, fence, record);
    });
    if (!isOurs) throw new Error("an owner with a fresh lease was fenced out");
    await store.transaction(async (session) => {
      await session.enter(id, fence, limits);
      await session.tx.query("INSERT INTO effect VALUES ($1)", [Buffer.from(id)]);
      await session.tx.query("DELETE FROM at_work WHERE id = $1", [Buffer.from(id)]);
      if (!(await session.complete(id, fence, completion()))) throw new Error("the completion was fenced out");
    });
  }

  /** Dies right after taking it: the lease is over before anybody could notice. */
  const dies = () => Math.random() < 0.3;

  async function sweep(store: PgStore, takes: string[], isDone: () => Promise<boolean>): Promise<void> {
    while (!(await isDone())) {
      const leaseMs = dies() ? 1 : LEASE_MS;
      for (const taken of await store.takeDue(TARGET, 10, leaseMs)) {
        if (leaseMs === 1) takes.push(Buffer.from(taken.fence).toString("hex"));
        else await resume(store, taken, takes);
      }
    }
  }

  async function retry(store: PgStore, ids: readonly Uint8Array[], takes: string[]): Promise<void> {
    for (const id of ids.toSorted(() => Math.random() - 0.5)) {
      const entry = await store.read(id);
      if (entry?.state !== "in_progress" || entry.clock.claimableInMs > 0) continue;
      const { fence, attempt, state } = entry;
      const leaseMs = dies() ? 1 : LEASE_MS;
      // A taker waits for a row a quarter of its lease at most, so one that is to die waits for nobody: taken by others, then.
      const taken = await store
        .takeOver(id, { fence, attempt, state }, new Uint8Array(randomBytes(16)), leaseMs)
        .catch((error) => (leaseMs === 1 && error.kind === "contention" ? null : Promise.reject(error)));
      if (taken === null) continue;
      if (leaseMs === 1) takes.push(Buffer.from(taken.fence).toString("hex"));
      else await resume(store, taken, takes);
    }
  }

  it("each is resumed by one at a time, every time under another fence, without a deadlock, and has one effect", async () => {
    const { url, ids, takes, worker } = await world();
    const beside = testPool(url, { max: 1 });
    const isDone = async () => {
      const { rowCount } = await beside.query("SELECT FROM oncekey.entry WHERE state <> 'succeeded' LIMIT 1");
      return rowCount === 0;
    };
    await Promise.all([
      ...Array.from({ length: 10 }, () => retry(worker(), ids, takes)),
      ...Array.from({ length: 2 }, () => sweep(worker(), takes, isDone)),
    ]);
    expect(await query(url, "SELECT count(*)::int AS n, count(DISTINCT id)::int AS ids FROM effect")).toEqual([
      { n: ENTRIES, ids: ENTRIES },
    ]);
    expect(await query(url, "SELECT FROM at_work")).toEqual([]);
    expect(new Set(takes).size).toBe(takes.length);
    expect(takes.length).toBeGreaterThan(ENTRIES);
    // One attempt for the first owner, and one for each take.
    const [attempts] = await query(url, "SELECT sum(attempt)::int AS n FROM oncekey.entry");
    expect(attempts).toEqual({ n: ENTRIES + takes.length });
    const deadlocks = "SELECT deadlocks::int AS n FROM pg_stat_database WHERE datname = current_database()";
    expect(await query(url, deadlocks)).toEqual([{ n: 0 }]);
  });
});

describe("what a sweeper takes", () => {
  it("a row whose kept answer this release cannot read is taken like any other: its end can still be found out", async () => {
    const { url, store } = await database();
    const damaged = newEntry({ runKind: "capture" });
    const sound = newEntry({ runKind: "capture" });
    for (const { id, fence } of [damaged, sound]) {
      await store.claim(id === damaged.id ? damaged : sound, 1_000);
      await store.markUnknown(id, fence, { reason: "threw", provisional: null, sweepInMs: 0, quietMs: 5_000 });
    }
    await query(url, `UPDATE oncekey.entry SET status = 500, outcome = '\\xff' WHERE key = '${damaged.key}'`);
    await passTime(url, 2_000);
    const taken = await store.takeDue({ ...TARGET, runKind: "capture" }, 10, LEASE_MS);
    expect(taken).toHaveLength(2);
    const of = (key: string) =>
      taken.find(({ id }) => Buffer.compare(id, key === damaged.key ? damaged.id : sound.id) === 0);
    expect(of(damaged.key)).toMatchObject({ from: "needs_recovery", operation: "invoices.create" });
    expect(of(damaged.key)?.entry).toMatchObject({ outcome: { status: 500 }, state: "in_progress" });
    expect(of(sound.key)?.entry).toMatchObject({ key: sound.key, state: "in_progress", attempt: 2 });
    const settlesInMs = of(sound.key)?.settlesInMs ?? Number.NaN;
    expect(settlesInMs).toBeGreaterThan(0);
    expect(settlesInMs).toBeLessThanOrEqual(4_000);
    // Under its fence it can be marked, although its answer cannot be read.
    const { id, fence } = of(damaged.key) ?? damaged;
    const mark = { reason: "unreadable", provisional: null, sweepInMs: null, quietMs: null };
    expect(await store.markUnknown(id, fence, mark)).toBe(true);
  });

  it("says which operations it can take up at most every ten seconds, and what nobody takes up is shown", async () => {
    const { url, store } = await database();
    const pool = testPool(url);
    const orphaned = async () => (await storeStatus(fromPg(pool))).orphaned;
    const version = async () =>
      (await query(url, "SELECT xmin::text FROM oncekey.sweep_target")).map(({ xmin }) => xmin);
    await store.claim(newEntry({ input }), 1_000);
    await store.claim(newEntry({ input, operationVersion: 2 }), 1_000);
    await passTime(url, 2_000);
    const group = { operation: "invoices.create", runKind: "phases", count: 1 };
    expect(await orphaned()).toMatchObject([
      { ...group, operationVersion: 1 },
      { ...group, operationVersion: 2 },
    ]);
    await store.announce([TARGET, TARGET]);
    expect(await orphaned()).toMatchObject([{ ...group, operationVersion: 2 }]);
    const first = await version();
    expect(first).toHaveLength(1);
    await store.announce([TARGET]);
    expect(await version()).toEqual(first);
    await passTime(url, 11_000);
    await Promise.all(Array.from({ length: 5 }, () => store.announce([TARGET])));
    expect(await version()).not.toEqual(first);
    await passTime(url, 61_000);
    expect(await orphaned()).toHaveLength(2);
  });

  it("never is what is unresolved purged, however old it is", async () => {
    const { url, store } = await database();
    const [running, unknown, released] = [newEntry(), newEntry({ runKind: "capture" }), newEntry()];
    for (const entry of [running, unknown, released]) await store.claim(entry, 1_000);
    const mark = { reason: "threw", provisional: null, sweepInMs: null, quietMs: null };
    await store.markUnknown(unknown.id, unknown.fence, mark);
    await store.release(released.id, released.fence, true);
    await passTime(url, 10 * 365 * 86_400_000);
    expect(await store.purge(100)).toBe(0);
    expect(await query(url, "SELECT count(*)::int AS n FROM oncekey.entry")).toEqual([{ n: 3 }]);
  });
});
