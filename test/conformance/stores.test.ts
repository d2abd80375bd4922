import { PGlite, type Transaction } from "@electric-sql/pglite";
import { fromPg } from "oncekey/drivers/pg";
import { fromPGlite } from "oncekey/drivers/pglite";
import { fromPostgresJs } from "oncekey/drivers/postgres-js";
import { type MemoryTransaction, memoryStore, type ResolutionRow } from "oncekey/memory";
import { changeLayout, migrate, type PostgresStoreOptions, postgresStore } from "oncekey/postgres";
import { type ShownResolution, type StoreHarness, storeSuite } from "oncekey/testing";
import type { PoolClient } from "pg";
import postgres, { type TransactionSql } from "postgres";
import { describe, it } from "vitest";
import { atEnd, createDatabase, type TestDatabaseOptions, testPool } from "../support/postgres.ts";
import { type Ask, beside, SUITE_ROW } from "../support/store-beside.ts";

const INSERT = "INSERT INTO suite_row (value) VALUES ($1)";

/** Made by the first case that asks, kept for the others. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

async function suiteDatabase(options: TestDatabaseOptions = {}): Promise<{ url: string; ask: Ask }> {
  const { url } = await createDatabase(options);
  const pool = testPool(url, { max: 2 });
  await pool.query(SUITE_ROW);
  return { url, ask: (sql, parameters) => pool.query(sql, parameters) };
}

/** Options of a suite on pg: in the partitioned layout, too. */
interface SuiteOptions extends TestDatabaseOptions {
  readonly partitioned?: true;
}

/** Time passes in these cases: what is shifted back falls into a partition of the past. */
async function partition(url: string): Promise<void> {
  const pool = testPool(url, { max: 2 });
  const { partitions } = await changeLayout(fromPg(pool), "partitioned");
  const until = partitions[0]?.from.toISOString();
  await pool.query(
    `CREATE TABLE oncekey.past PARTITION OF oncekey.outcome FOR VALUES FROM ('2000-01-01') TO ('${until}')`,
  );
}

function onPg(
  options: SuiteOptions = {},
  storeOptions: PostgresStoreOptions = {},
): () => Promise<StoreHarness<PoolClient>> {
  const prepared = once(async () => {
    const { url, ask } = await suiteDatabase(options);
    if (options.partitioned === true) await partition(url);
    return { ask, store: postgresStore(fromPg(testPool(url)), storeOptions) };
  });
  return async () => {
    const { ask, store } = await prepared();
    const insertRow = async (tx: PoolClient, value: string) => void (await tx.query(INSERT, [value]));
    return { store, insertRow, ...(await beside(ask)) };
  };
}

function onPostgresJs(): () => Promise<StoreHarness<TransactionSql>> {
  const prepared = once(async () => {
    const { url, ask } = await suiteDatabase();
    const sql = postgres(url, { max: 10, onnotice: () => {} });
    atEnd(() => sql.end());
    return { ask, store: postgresStore(fromPostgresJs(sql)) };
  });
  return async () => {
    const { ask, store } = await prepared();
    const insertRow = async (tx: TransactionSql, value: string) => void (await tx.unsafe(INSERT, [value]));
    return { store, insertRow, ...(await beside(ask)) };
  };
}

function onPGlite(): () => Promise<StoreHarness<Transaction>> {
  const prepared = once(async () => {
    const db = await PGlite.create();
    atEnd(() => db.close());
    await migrate(fromPGlite(db));
    await db.exec(SUITE_ROW);
    const ask: Ask = (sql, parameters) => db.query(sql, parameters);
    return { ask, store: postgresStore(fromPGlite(db)) };
  });
  return async () => {
    const { ask, store } = await prepared();
    const insertRow = async (tx: Transaction, value: string) => void (await tx.query(INSERT, [value]));
    return { store, insertRow, ...(await beside(ask)) };
  };
}

/** Cases that look at an open transaction from outside: with one connection they would wait for themselves. */
const NEEDS_TWO_CONNECTIONS = [
  "a look tells whether an identity is locked, and hinders nobody who locks it",
  "the first to lock is the owner, an exact duplicate is busy, another payload is a mismatch",
  "the finished entry and the business rows are committed together, and seen by nobody before",
  "a transaction that has the lock reads what was committed before it got it",
  "a transaction whose statement failed lets go of its locks at once, before it rolls back",
  "a claim does not wait for a transaction that only holds the entry: it is there",
  "an owned entry is not taken over before the transaction ends",
  "a takeover that waited for an owner's rollback gets the entry",
  "a takeover waits for an open transaction that recorded a phase, and then resumes after it",
  "a completion in an open transaction makes a racing takeover come away with nothing",
  "an identity that a transaction finished but has not committed yet is claimed by nobody else",
  "a renewal does not wait for a phase that has only entered",
  "entries that an open transaction holds are skipped, without waiting for it",
  "transactions that commit out of the order of their sending lose no message",
  "a second sender of one order waits for the first one's commit, so that places follow the commits",
  "senders of other orders, of other tenants and of none do not wait for an open transaction",
  "a lock that another transaction has is refused at once, in the place of its digest, and free after its end",
];
const ONE_CONNECTION = Object.fromEntries(NEEDS_TWO_CONNECTIONS.map((name) => [name, "PGlite has one connection"]));

/** Cases that look at an entry between its end and its purge (postgres-layout.test.ts has what holds instead). */
const NEEDS_EXPIRED_ENTRIES = [
  "retention counts from the completion, not from the claim",
  "an expired entry is forgotten, and its identity can be claimed as new",
  "an expired entry is replaced within one transaction, and stays where that rolls back",
];
const ABSENT_AT_ONCE = Object.fromEntries(
  NEEDS_EXPIRED_ENTRIES.map((name) => [name, "what has expired in a partition is absent at once"]),
);

function shownResolution({ entryId, openIntents, resolvedAt: _at, ...row }: ResolutionRow): ShownResolution {
  return { ...row, entryId: Buffer.from(entryId).toString("hex"), openIntents: openIntents.length };
}

async function inMemory(): Promise<StoreHarness<MemoryTransaction>> {
  let now = Date.UTC(2026, 0, 1);
  const store = memoryStore({ clock: () => now });
  return {
    store,
    insertRow: (tx, value) => tx.insert("suite_row", { value }),
    countRows: async (value) => store.rows("suite_row").filter((row) => row.value === value).length,
    messageIds: async () => store.messages().map((message) => message.id),
    resolutions: async () => store.resolutions().map(shownResolution),
    announced: async () => store.announced(),
    advance: async (ms) => {
      now += ms;
    },
    close: async () => {},
  };
}

const runner = { describe, it };
storeSuite(runner, "memory", inMemory);
storeSuite(runner, "postgres through pg", onPg());
storeSuite(runner, "postgres through pg, without groups", onPg({}, { groups: false }));
const apart = { limits: ABSENT_AT_ONCE };
storeSuite(runner, "postgres through pg, partitioned", onPg({ partitioned: true }), apart);
storeSuite(
  runner,
  "postgres through pg, partitioned, without groups",
  onPg({ partitioned: true }, { groups: false }),
  apart,
);
storeSuite(runner, "postgres through pg, REPEATABLE READ by default", onPg({ isolation: "repeatable read" }));
storeSuite(runner, "postgres through pg, SERIALIZABLE by default", onPg({ isolation: "serializable" }));
storeSuite(runner, "postgres through postgres-js", onPostgresJs());
storeSuite(runner, "postgres on PGlite", onPGlite(), { limits: ONE_CONNECTION });
