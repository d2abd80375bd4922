import { fromPg } from "oncekey/drivers/pg";
import { changeLayout, type Driver, postgresStore } from "oncekey/postgres";
import type pg from "pg";
import { describe, expect, it } from "vitest";
import { statements } from "../../src/stores/postgres/sql.gen.ts";
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
  const target = { operation: "invoices.create", runKind: "phases" as const, operationVersion: 1 };
  const FINISHED = `
    INSERT INTO oncekey.entry (id, fence, seed, fingerprint, state, run_kind, tenant, operation, key,
      operation_version, created_at, completed_at, expires_at, status, outcome)
    SELECT sha256(n::text::bytea), decode(repeat('00', 16), 'hex'), decode(repeat('00', 16), 'hex'), '\\x01',
      'succeeded', 'phases', 'acme', 'invoices.create', n::text, 1, now(), now(), now() + interval '1 day', 201, '\\x01'
    FROM generate_series(1, 100000) AS n`;
  const UNFINISHED = (state: string, columns: string, values: string) => `
    INSERT INTO oncekey.entry (id, fence, seed, fingerprint, state, run_kind, tenant, operation, key,
      operation_version, created_at, input, ${columns})
    SELECT sha256('${state}' || n::text::bytea), decode(repeat('00', 16), 'hex'), decode(repeat('00', 16), 'hex'), '\\x01',
      '${state}', 'phases', 'acme', 'invoices.create', n::text, 1, now(), '\\x01', ${values}
    FROM generate_series(1, 100) AS n`;

  async function filled(...statements: string[]) {
    const { url, pool } = await database();
    await query(url, ...statements, "ANALYZE");
    return explaining(pool);
  }

  it("of a hundred lapsed and a hundred waiting entries among finished ones the sweep reads these by their indexes", async () => {
    const { store, plans } = await filled(
      FINISHED,
      UNFINISHED("in_progress", "lease_until", "now() - n * interval '1 second'"),
      UNFINISHED("needs_recovery", "reason, sweep_at", "'gave_up', now() - n * interval '1 second'"),
    );
    expect(await store.takeDue(target, 100, 30_000)).toHaveLength(100);
    expect(await store.takeDue(target, 200, 30_000)).toHaveLength(100);
    await store.markLapsed({ ...target, runKind: "capture" }, { reason: "lapsed", sweepInMs: 0, quietMs: 0 }, 100);
    await store.purge(100);
    const [due, again, lapsed, purge] = plans();
    for (const plan of [due, again]) {
      expect(indexesOf(plan)).toEqual(expect.arrayContaining(["entry_lease", "entry_sweep"]));
      expect(scannedWhole(plan)).toEqual([]);
    }
    expect(indexesOf(lapsed)).toContain("entry_lease");
    expect(scannedWhole(lapsed)).toEqual([]);
    expect(indexesOf(purge)).toContain("entry_purge");
  });

  it("of an outbox full of delivered messages a claim reads those that are due, and their orders, by indexes", async () => {
    const { store, plans } = await filled(`
      INSERT INTO oncekey.outbox (id, topic, payload, tenant, order_by, state, delivered_at, created_at, available_at)
      SELECT n::text, 'invoice.created', '{}', 'acme', CASE WHEN n % 2 = 0 THEN 'o' || n % 50 END,
        CASE WHEN n > 49000 THEN 'pending' ELSE 'delivered' END, CASE WHEN n <= 49000 THEN now() END, now(), now()
      FROM generate_series(1, 50000) AS n`);
    const claim = { topics: ["invoice.*"], limit: 200, leaseMs: 30_000 };
    const messages = await store.outbox.claim(claim);
    expect(messages).toHaveLength(200);
    const head = messages.find(({ orderBy }) => orderBy !== null);
    if (head === undefined) throw new Error("no message of an order was claimed");
    await store.outbox.delivered(head);
    expect(await store.outbox.claimNext(head, claim)).toMatchObject({ orderBy: head.orderBy });
    await store.outbox.purge(10, 0);
    const [claimed, , next, purge] = plans();
    expect(indexesOf(claimed)).toEqual(
      expect.arrayContaining(["outbox_due", "outbox_ordered_due", "outbox_order", "outbox_pkey"]),
    );
    expect(indexesOf(next)).toContain("outbox_order");
    expect(indexesOf(purge)).toContain("outbox_purge");
    for (const plan of [claimed, next, purge]) expect(scannedWhole(plan)).toEqual([]);
  });

  it("a look-up of deliveries reads the primary key, and their purge the index of their end", async () => {
    const { store, plans } = await filled(`
      INSERT INTO oncekey.inbox (received_at, expires_at, id, tenant, source, delivery)
      SELECT now(), now() + interval '1 day', sha256(n::text::bytea), 'acme', 'queue', n::text
      FROM generate_series(1, 50000) AS n`);
    await store.deliveries([newEntry().id]);
    await store.purgeDeliveries(100);
    const [deliveries, purge] = plans();
    expect(indexesOf(deliveries)).toEqual(["inbox_pkey"]);
    expect(indexesOf(purge)).toContain("inbox_purge");
    for (const plan of [deliveries, purge]) expect(scannedWhole(plan)).toEqual([]);
  });

  it("a group's statements read the primary key, once a member and not the table", async () => {
    const { store, plans } = await filled(FINISHED);
    const entries = [newEntry(), newEntry(), newEntry()];
    await Promise.all(entries.map(({ id }) => store.read(id)));
    await Promise.all(entries.map((entry) => store.claim(entry, 60_000)));
    await Promise.all(entries.map(({ id, fence }) => store.complete(id, fence, completion())));
    const [, read, , claim, , complete] = plans();
    expect(indexesOf(read)).toEqual(["entry_pkey", "entry_pkey"]);
    expect(indexesOf(claim)).toEqual([]);
    expect(indexesOf(complete)).toEqual(["entry_pkey", "entry_pkey"]);
    // The layout is one row.
    expect(scannedWhole(read)).toEqual(["layout"]);
    for (const plan of [claim, complete]) expect(scannedWhole(plan)).toEqual([]);
  });

  /** The store on one connection, and how that planned each statement, in their order. */
  async function explaining(pool: pg.Pool) {
    const plans: Plan[] = [];
    const driver: Driver<unknown> = {
      name: "explaining",
      connections: 1,
      abandons: false,
      async run(sql, parameters) {
        const values = [...parameters];
        const { rows } = await pool.query<{ "QUERY PLAN": Plan[] }>({ text: `EXPLAIN (FORMAT JSON) ${sql}`, values });
        plans.push(...(rows[0]?.["QUERY PLAN"] ?? []));
        return (await pool.query({ text: sql, values })).rows;
      },
      transaction: () => Promise.reject(new Error("not used")),
    };
    return { store: postgresStore(driver), plans: () => plans };
  }

  interface Plan {
    readonly Plan?: Node;
  }

  interface Node {
    readonly Plans?: readonly Node[];
    readonly "Node Type": string;
    readonly "Index Name"?: string;
    readonly "Relation Name"?: string;
  }

  function nodesOf(node: Node | undefined): Node[] {
    return node === undefined ? [] : [node, ...(node.Plans ?? []).flatMap(nodesOf)];
  }

  const indexesOf = (plan: Plan | undefined) =>
    nodesOf(plan?.Plan).flatMap((node) => (node["Index Name"] === undefined ? [] : [node["Index Name"]]));

  const scannedWhole = (plan: Plan | undefined) =>
    nodesOf(plan?.Plan).flatMap((node) => (node["Node Type"] === "Seq Scan" ? [node["Relation Name"]] : []));

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

describe("plans in the partitioned layout", () => {
  it("a look-up reads indexes, and of the partitions only those that are not past", async () => {
    const { pool, store } = await database();
    await changeLayout(fromPg(pool), "partitioned");
    await store.read(newEntry().id);
    await pool.query(
      "CREATE TABLE oncekey.past PARTITION OF oncekey.outcome FOR VALUES FROM ('2000-01-01') TO ('2001-01-01')",
    );
    const entries = Array.from({ length: 50 }, () => newEntry());
    await Promise.all(entries.map((entry) => store.claim(entry, 60_000)));
    await Promise.all(entries.map(({ id, fence }) => store.complete(id, fence, completion())));
    // For one connection only: the pool has others.
    const client = await pool.connect();
    await client.query("SET enable_seqscan = off; ANALYZE oncekey.outcome");
    const { rows } = await client.query({
      text: `EXPLAIN (ANALYZE, FORMAT JSON) ${statements.read_apart}`,
      values: [newEntry().id],
    });
    await client.query("RESET enable_seqscan");
    client.release();
    const plan = JSON.stringify(rows);
    expect(plan).toContain("entry_pkey");
    expect(plan).not.toContain('"past"');
    expect(plan.match(/"Relation Name":"outcome_\d+"/g)).toHaveLength(3);
    expect(plan.match(/"Index Name":"outcome_\d+_pkey"/g)).toHaveLength(3);
  });
});
