import { fromPg } from "oncekey/drivers/pg";
import { type Driver, postgresStore } from "oncekey/postgres";
import type pg from "pg";
import { describe, expect, it } from "vitest";
import { createDatabase, query, testPool } from "../support/postgres.ts";
import { completion, limits, newEntry } from "../support/store-values.ts";

const BUSINESS = "CREATE TABLE business (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL)";

async function database() {
  const { url } = await createDatabase();
  await query(url, BUSINESS);
  const pool = testPool(url, { max: 16 });
  return { url, pool, store: postgresStore(fromPg(pool)) };
}

async function runOnce(store: ReturnType<typeof postgresStore<pg.PoolClient>>) {
  const entry = newEntry({ runKind: "transaction" });
  await store.transaction(async (session) => {
    await session.lock(entry.id, entry.fingerprint, limits);
    await session.read(entry.id);
    await session.tx.query("INSERT INTO business (key) VALUES ($1)", [entry.key]);
    await session.insertFinished(entry, completion());
  });
}

describe("what a request costs", () => {
  it("writes less than 1,000 bytes of WAL, business insert included, and no dead tuple", async () => {
    const { url, store } = await database();
    // One connection all along: a new one may write hint bits of the catalogue, which checksums make into page images.
    const measure = testPool(url, { max: 1 });
    const written = async (since: string) =>
      (
        await measure.query(
          "SELECT pg_current_wal_insert_lsn()::text AS lsn, (pg_current_wal_insert_lsn() - $1::pg_lsn)::float8 AS bytes",
          [since],
        )
      ).rows[0] as { lsn: string; bytes: number };
    const costs: number[] = [];
    for (let run = 0; run < 41; run += 1) {
      const { lsn } = await written("0/0");
      await runOnce(store);
      costs.push((await written(lsn)).bytes);
    }
    // The median: other processes of the server write now and then.
    const median = costs.sort((a, b) => a - b)[20] ?? 0;
    expect(median).toBeGreaterThan(254);
    expect(median).toBeLessThan(1_000);
  });
});

describe("plans", () => {
  async function filled() {
    const { url, store, pool } = await database();
    await query(
      url,
      `INSERT INTO oncekey.entry (id, fence, seed, fingerprint, state, run_kind, tenant, operation, key,
         operation_version, created_at, completed_at, expires_at, status, outcome)
       SELECT sha256(n::text::bytea), decode(repeat('00', 16), 'hex'), decode(repeat('00', 16), 'hex'), '\\x01',
         'succeeded', 'phases', 'acme', 'invoices.create', n::text, 1, now(), now(), now() + interval '1 day', 201, '\\x01'
       FROM generate_series(1, 20000) AS n`,
      "ANALYZE oncekey.entry",
    );
    return { url, store, pool };
  }

  it("the sweep reads the partial index of leases, and the purge the one of retention", async () => {
    const { pool, store } = await filled();
    await store.claim(newEntry(), 1);
    const client = await pool.connect();
    const used = async (sql: string) =>
      JSON.stringify((await client.query(`EXPLAIN (FORMAT JSON) ${sql}`)).rows).match(/"Index Name":"(\w+)"/)?.[1];
    // As the statements are: only a stable function of time can bound an index.
    expect(
      await used(
        "SELECT id FROM oncekey.entry WHERE state = 'in_progress' AND lease_until <= statement_timestamp() ORDER BY lease_until LIMIT 100",
      ),
    ).toBe("entry_lease");
    const statements = await loggedPlans(client, async () => {
      await postgresStore(fromClient(client)).lapsed(
        [{ operation: "invoices.create", runKind: "phases", operationVersion: 1 }],
        100,
      );
      await postgresStore(fromClient(client)).purge(100);
    });
    client.release();
    expect(statements.lapsed).toContain("entry_lease");
    expect(statements.purge).toContain("entry_purge");
  });

  /** The store's own statements, as this connection would plan them. */
  function fromClient(client: pg.PoolClient): Driver<unknown> {
    return {
      name: "one client",
      connections: 1,
      abandons: false,
      run: async (sql, parameters) => (await client.query({ text: sql, values: [...parameters] })).rows,
      transaction: () => Promise.reject(new Error("not used")),
    };
  }

  async function loggedPlans(client: pg.PoolClient, work: () => Promise<void>) {
    const plans: Record<string, string> = {};
    const original = client.query.bind(client) as (config: {
      text: string;
      values: unknown[];
    }) => Promise<pg.QueryResult>;
    const explaining = async (config: { text: string; values: unknown[] }) => {
      const plan = await original({ text: `EXPLAIN (FORMAT JSON) ${config.text}`, values: config.values });
      plans[config.text.includes("SKIP LOCKED") ? "purge" : "lapsed"] = JSON.stringify(plan.rows);
      return original(config);
    };
    Object.assign(client, { query: explaining });
    await work();
    Object.assign(client, { query: original });
    return plans;
  }

  it("recording a phase is a HOT update", async () => {
    const { store } = await database();
    const entry = newEntry();
    await store.claim(entry, 60_000);
    const hot = await store.transaction(async (session) => {
      await session.enter(entry.id, entry.fence, limits);
      const record = { position: 0, kind: "phase" as const, name: "created", value: new Uint8Array([1]) };
      expect(await session.recordPhase(entry.id, entry.fence, record)).toBe(true);
      const sql = "SELECT pg_stat_get_xact_tuples_hot_updated('oncekey.entry'::regclass)::int AS hot";
      return (await session.tx.query(sql)).rows[0].hot as number;
    });
    expect(hot).toBe(1);
  });
});
