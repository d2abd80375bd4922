import { fromPg } from "oncekey/drivers/pg";
import {
  changeLayout,
  entriesById,
  eraseContent,
  inspectEntries,
  type PostgresStoreOptions,
  postgresStore,
  storeStatus,
} from "oncekey/postgres";
import type pg from "pg";
import { describe, expect, it } from "vitest";
import { createDatabase, query, type TestDatabaseOptions, testPool } from "../support/postgres.ts";
import { completion, limits, newEntry } from "../support/store-values.ts";

type Store = ReturnType<typeof postgresStore<pg.PoolClient>>;
type Entry = ReturnType<typeof newEntry>;

const HOUR_MS = 3_600_000;
const hex = (id: Uint8Array) => Buffer.from(id).toString("hex");

async function partitioned(options: PostgresStoreOptions = {}, database: TestDatabaseOptions = {}) {
  const { url } = await createDatabase(database);
  const pool = testPool(url, { max: 12 });
  const driver = fromPg(pool);
  await changeLayout(driver, "partitioned");
  const store = postgresStore(driver, { groups: false, ...options });
  // The first look-up tells the store of the layout.
  await store.read(newEntry().id);
  return { url, pool, driver, store };
}

async function rowsOf(url: string, { id }: Pick<Entry, "id">) {
  const at = (table: string) => query(url, `SELECT state FROM oncekey.${table} WHERE id = '\\x${hex(id)}'`);
  return { entry: (await at("entry")).length, outcome: (await at("outcome")).length };
}

async function finished(store: Store, given: Parameters<typeof completion>[0] = {}): Promise<Entry> {
  const entry = newEntry();
  await store.claim(entry, 60_000);
  expect(await store.complete(entry.id, entry.fence, completion(given))).toBe(true);
  return entry;
}

const finishing = (store: Store, entry: Entry, body: () => Promise<unknown> = async () => {}, retentionMs = HOUR_MS) =>
  store.transaction(async (session) => {
    await session.lock(entry.id, entry.fingerprint, limits);
    expect(await session.read(entry.id)).toBeNull();
    await body();
    await session.insertFinished(entry, completion({ retentionMs }));
  });

describe("where an outcome goes in the partitioned layout", () => {
  it("a claim lies in the table of entries, its outcome in a partition, never in both", async () => {
    const { url, store } = await partitioned();
    const entry = newEntry();
    await store.claim(entry, 60_000);
    expect(await rowsOf(url, entry)).toEqual({ entry: 1, outcome: 0 });
    await store.complete(entry.id, entry.fence, completion());
    expect(await rowsOf(url, entry)).toEqual({ entry: 0, outcome: 1 });
    const inOne = newEntry({ runKind: "transaction" });
    await finishing(store, inOne);
    expect(await rowsOf(url, inOne)).toEqual({ entry: 0, outcome: 1 });
    expect(await store.read(inOne.id)).toMatchObject({ state: "succeeded", key: inOne.key, clock: { expired: false } });
  });

  it("what outlives its outcome, is forgotten at once or has records stays with its entry", async () => {
    const { url, store } = await partitioned();
    const recorded = newEntry();
    await store.claim(recorded, 60_000);
    const record = { position: 0, kind: "call" as const, name: "a", value: new Uint8Array([1]) };
    await store.recordCall(recorded.id, recorded.fence, record);
    await store.complete(recorded.id, recorded.fence, completion());
    const kept = [recorded, await finished(store, { tombstoneMs: 1_000 }), await finished(store, { retentionMs: 0 })];
    for (const entry of kept) expect(await rowsOf(url, entry)).toEqual({ entry: 1, outcome: 0 });
  });

  it.each(["alone", "in a transaction"])("so does what gets a record while its completion waits: %s", async (where) => {
    const { url, store, pool } = await partitioned();
    const { id, fence, ...entry } = newEntry();
    await store.claim({ id, fence, ...entry }, 60_000);
    const recording = await pool.connect();
    await recording.query("BEGIN");
    await recording.query("SELECT FROM oncekey.entry WHERE id = $1 FOR NO KEY UPDATE", [id]);
    await recording.query("INSERT INTO oncekey.phase VALUES (0, $1, 'call', 'a', '')", [id]);
    const inside = () => store.transaction((session) => session.complete(id, fence, completion()));
    const complete = where === "alone" ? () => store.complete(id, fence, completion()) : inside;
    const first = complete().catch(({ kind }) => kind);
    const waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while ((await pool.query(waiting)).rowCount === 0);
    await recording.query("COMMIT");
    recording.release();
    // Inside a transaction nothing can be done but to run it again.
    expect(await first).toBe(where === "alone" ? true : "contention");
    if (where !== "alone") expect(await complete()).toBe(true);
    expect(await rowsOf(url, { id })).toEqual({ entry: 1, outcome: 0 });
  });

  it("what no partition is there for stays with its entry: nothing is ever without a place", async () => {
    const { url, store } = await partitioned();
    const entry = await finished(store, { retentionMs: 400 * 24 * HOUR_MS });
    expect(await rowsOf(url, entry)).toEqual({ entry: 1, outcome: 0 });
    const inOne = newEntry({ runKind: "transaction" });
    await finishing(store, inOne, undefined, 400 * 24 * HOUR_MS);
    expect(await rowsOf(url, inOne)).toEqual({ entry: 1, outcome: 0 });
  });

  it("a group of completions goes where each of them would go alone", async () => {
    const { url, store } = await partitioned({ groups: true });
    const entries = Array.from({ length: 12 }, () => newEntry({ runKind: "capture" }));
    await Promise.all(entries.map((entry) => store.claim(entry, 60_000)));
    const tombstoneMs = (index: number) => (index % 2 === 0 ? 0 : 1_000);
    const done = entries.map(({ id, fence }, index) =>
      store.complete(id, fence, completion({ tombstoneMs: tombstoneMs(index) })),
    );
    expect(new Set(await Promise.all(done))).toEqual(new Set([true]));
    for (const [index, entry] of entries.entries()) {
      const apart = tombstoneMs(index) === 0;
      expect(await rowsOf(url, entry)).toEqual({ entry: apart ? 0 : 1, outcome: apart ? 1 : 0 });
    }
    const read = await Promise.all(entries.map(({ id }) => store.read(id)));
    expect(new Set(read.map((entry) => entry?.state))).toEqual(new Set(["succeeded"]));
  });

  it("a process that has not heard of the change sees every outcome, and runs nothing again", async () => {
    const { url, driver, store } = await partitioned();
    const entry = await finished(store);
    for (const groups of [true, false]) {
      expect(await postgresStore(driver, { groups }).read(entry.id)).toMatchObject({ state: "succeeded" });
      const unaware = postgresStore(driver, { groups });
      expect(await unaware.claim(newEntry({ id: entry.id }), 60_000)).toBeNull();
      await expect(
        unaware.transaction((session) =>
          session.insertFinished(newEntry({ id: entry.id, runKind: "transaction" }), completion()),
        ),
      ).rejects.toMatchObject({ kind: "conflict" });
    }
    expect(await rowsOf(url, entry)).toEqual({ entry: 0, outcome: 1 });
  });

  it("what has expired is absent at once, and its identity is free", async () => {
    const { url, driver, store } = await partitioned();
    const entry = await finished(store, { retentionMs: 1 });
    while ((await store.read(entry.id)) !== null);
    const again = newEntry({ id: entry.id });
    expect(await store.claim(again, 60_000)).toMatchObject({ attempt: 1, state: "in_progress" });
    expect(await store.complete(again.id, again.fence, completion())).toBe(true);
    expect(await rowsOf(url, entry)).toEqual({ entry: 0, outcome: 2 });
    // What has expired there is not what an operator has to purge.
    expect(await storeStatus(driver)).toMatchObject({ entries: { succeeded: 1 }, expired: 0 });
    expect(await store.read(entry.id)).toMatchObject({ fence: again.fence });
  });
});

describe("one identity, one run, over both tables (V23)", () => {
  it("a claim while a transaction of the same identity is open: whoever commits second is refused", async () => {
    const { url, store } = await partitioned();
    const entry = newEntry({ runKind: "transaction" });
    const claimed = finishing(store, entry, async () => {
      expect(await store.claim(newEntry({ id: entry.id }), 60_000)).not.toBeNull();
    });
    await expect(claimed).rejects.toMatchObject({ kind: "conflict" });
    expect(await rowsOf(url, entry)).toEqual({ entry: 1, outcome: 0 });
  });

  it("a claim that meets the uncommitted outcome of a transaction waits for it, and comes away with nothing", async () => {
    const { url, store, pool } = await partitioned();
    const entry = newEntry({ runKind: "transaction" });
    let claim: Promise<unknown> | undefined;
    await store.transaction(async (session) => {
      await session.insertFinished(entry, completion());
      claim = store.claim(newEntry({ id: entry.id }), 600_000);
      while ((await pool.query("SELECT FROM pg_locks WHERE NOT granted")).rowCount === 0);
    });
    expect(await claim).toBeNull();
    expect(await rowsOf(url, entry)).toEqual({ entry: 0, outcome: 1 });
  });

  it("two transactions whose ends fall into two partitions (across midnight) do not both commit", async () => {
    const { url, store } = await partitioned();
    const entry = newEntry({ runKind: "transaction" });
    const day = 24 * HOUR_MS;
    // Without the lock that keeps them apart before: the database decides.
    const ends = await Promise.allSettled(
      [HOUR_MS / 60, day - 1].map((retentionMs, index) =>
        store.transaction((session) =>
          session.insertFinished(
            { ...entry, fence: newEntry().fence },
            completion({ retentionMs: retentionMs + index }),
          ),
        ),
      ),
    );
    expect(ends.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(await rowsOf(url, entry)).toEqual({ entry: 0, outcome: 1 });
  });

  it("raced by claims and transactions at once each identity is had by one", async () => {
    const { url, store } = await partitioned();
    for (let round = 0; round < 20; round++) {
      const { id } = newEntry();
      const ends = await Promise.allSettled(
        Array.from({ length: 8 }, async (_, index) => {
          if (index % 2 === 0) {
            return store.transaction((session) =>
              session.insertFinished(newEntry({ id, runKind: "transaction" }), completion()),
            );
          }
          const entry = newEntry({ id });
          if ((await store.claim(entry, 60_000)) === null) throw new Error("taken");
          return store.complete(id, entry.fence, completion());
        }),
      );
      expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      expect(await rowsOf(url, { id })).toEqual({ entry: 0, outcome: 1 });
    }
  });

  it("a release that knows no partitions is refused by the database, and cannot start any more", async () => {
    const { url, store } = await partitioned();
    const entry = await finished(store);
    const old = `INSERT INTO oncekey.entry (id, fence, seed, fingerprint, state, lease_until, run_kind, tenant, operation,
        key, operation_version, created_at)
      VALUES ('\\x${hex(entry.id)}', '\\x${"00".repeat(16)}', '\\x${"00".repeat(16)}', '\\x01', 'in_progress',
        now() + interval '1 minute', 'phases', 'acme', 'o', 'k', 1, now()) ON CONFLICT (id) DO NOTHING`;
    await expect(query(url, old)).rejects.toMatchObject({ code: "23505", constraint: "entry_pkey" });
    const demanded = await query(url, "SELECT max(minimum_reader) AS least FROM oncekey.migration");
    expect(demanded).toEqual([{ least: 4 }]);
  });
});

describe("isolation levels in the partitioned layout", () => {
  it.each(["repeatable read", "serializable"] as const)("%s is refused, before and at the write", async (isolation) => {
    const { url, store, driver } = await partitioned();
    const database = new URL(url).pathname.slice(1);
    await query(url, `ALTER DATABASE ${database} SET default_transaction_isolation = '${isolation}'`);
    const other = postgresStore(fromPg(testPool(url)));
    await expect(other.start()).rejects.toMatchObject({ code: "oncekey_config_invalid" });
    await expect(changeLayout(fromPg(testPool(url)), "partitioned")).rejects.toThrow(/READ COMMITTED/);
    const entry = newEntry({ runKind: "transaction" });
    const written = store.transaction(async (session) => {
      await session.tx.query(`SET TRANSACTION ISOLATION LEVEL ${isolation}`);
      await session.insertFinished(entry, completion());
    });
    await expect(written).rejects.toMatchObject({ code: "oncekey_config_invalid" });
    await expect(written).rejects.toThrow(/oncekey layout plain/);
    expect(await rowsOf(url, entry)).toEqual({ entry: 0, outcome: 0 });
    expect((await changeLayout(driver, "plain")).name).toBe("plain");
  });
});

describe("what operators see of outcomes in partitions", () => {
  it("status, inspect, resolve and erase know them", async () => {
    const { url, driver, store } = await partitioned();
    const [entry, other] = [await finished(store), await finished(store)];
    const status = await storeStatus(driver);
    expect(status).toMatchObject({ entries: { succeeded: 2 }, layout: { name: "partitioned", behind: false } });
    expect(status.bytes.outcome).toBeGreaterThan(0);
    expect(status.layout.partitions.map(({ state }) => state)).toEqual(["attached", "attached", "attached"]);
    expect(await inspectEntries(driver, { key: entry.key })).toMatchObject([{ id: hex(entry.id), status: 201 }]);
    expect(await entriesById(driver, hex(entry.id).slice(0, 12))).toMatchObject([{ key: entry.key }]);
    const decided = {
      verdict: "released" as const,
      completion: null,
      attempt: null,
      force: true,
      by: "ann",
      note: null,
    };
    expect(await store.resolve(entry.id, { ...decided, fence: newEntry().fence })).toEqual({
      kind: "finished",
      state: "succeeded",
    });
    const selection = { tenant: "acme", operation: "invoices.create", key: entry.key };
    expect(await eraseContent(driver, selection, { dryRun: true })).toMatchObject({ kind: "planned", entries: 1 });
    expect(await eraseContent(driver, selection)).toMatchObject({ kind: "erased", entries: 1 });
    expect(await rowsOf(url, entry)).toEqual({ entry: 1, outcome: 0 });
    expect(await store.read(entry.id)).toMatchObject({
      outcome: null,
      outcomeGone: true,
      fingerprint: entry.fingerprint,
    });
    expect(await rowsOf(url, other)).toEqual({ entry: 0, outcome: 1 });
  });
});
