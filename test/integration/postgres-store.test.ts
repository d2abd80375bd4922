import { setTimeout as sleep } from "node:timers/promises";
import { fromPg } from "oncekey/drivers/pg";
import { fromPostgresJs } from "oncekey/drivers/postgres-js";
import { type Driver, postgresStore } from "oncekey/postgres";
import pg from "pg";
import postgres from "postgres";
import { describe, expect, it } from "vitest";
import { cuttingProxy } from "../support/cutting-proxy.ts";
import {
  atEnd,
  createDatabase,
  passTime,
  query,
  sharedServer,
  startTestServer,
  testPool,
} from "../support/postgres.ts";
import { completion, limits, newEntry } from "../support/store-values.ts";

const BUSINESS = "CREATE TABLE business (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL)";

async function database() {
  const { url } = await createDatabase();
  await query(url, BUSINESS);
  const pool = testPool(url, { max: 16 });
  return { url, pool, store: postgresStore(fromPg(pool)) };
}

const countBusiness = async (url: string) => Number((await query(url, "SELECT count(*) AS n FROM business"))[0]?.n);

describe("one-commit transactions", () => {
  it("of 16 connections on one key, one payload each round, one runs; nobody else leaves a row", async () => {
    const { url, store } = await database();
    for (let round = 0; round < 10; round += 1) {
      const entry = newEntry({ runKind: "transaction" });
      const racers = Array.from({ length: 16 }, () => raceOnce(store, entry));
      const told = await Promise.all(racers);
      expect(told.filter((result) => result === "ran")).toHaveLength(1);
      expect(told).not.toContain("mismatch");
    }
    expect(await countBusiness(url)).toBe(10);
  });

  async function raceOnce(store: ReturnType<typeof postgresStore<pg.PoolClient>>, entry: ReturnType<typeof newEntry>) {
    return store.transaction(async (session) => {
      const lock = await session.lock(entry.id, entry.fingerprint, limits);
      if (lock !== "owner") return lock;
      if ((await session.read(entry.id)) !== null) return "finished";
      await session.tx.query("INSERT INTO business (key) VALUES ($1)", [entry.key]);
      await session.insertFinished({ ...entry, fence: newEntry().fence }, completion());
      return "ran";
    });
  }

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
      expect(await raceOnce(store, newEntry({ runKind: "transaction" }))).toBe("ran");
      costs.push((await written(lsn)).bytes);
    }
    // The median: other processes of the server write now and then.
    const median = costs.sort((a, b) => a - b)[20] ?? 0;
    expect(median).toBeGreaterThan(254);
    expect(median).toBeLessThan(1_000);
  });
});

describe("the transaction that the handler was given (V21, V22)", () => {
  it("stores nothing and says so when the handler committed it before the last insert", async () => {
    const { url, store } = await database();
    const entry = newEntry({ runKind: "transaction" });
    const lost = store.transaction(async (session) => {
      await session.lock(entry.id, entry.fingerprint, limits);
      await session.tx.query("COMMIT");
      await session.insertFinished(entry, completion());
    });
    await expect(lost).rejects.toMatchObject({ kind: "transaction_lost" });
    expect(await query(url, "SELECT FROM oncekey.entry")).toHaveLength(0);
  });

  it("notices it as well when the handler began another one", async () => {
    const { url, store } = await database();
    const entry = newEntry({ runKind: "transaction" });
    const lost = store.transaction(async (session) => {
      await session.lock(entry.id, entry.fingerprint, limits);
      await session.tx.query("ROLLBACK");
      await session.tx.query("BEGIN");
      await session.insertFinished(entry, completion());
    });
    await expect(lost).rejects.toMatchObject({ kind: "transaction_lost" });
    expect(await query(url, "SELECT FROM oncekey.entry")).toHaveLength(0);
  });

  it("records no phase and no outcome outside the transaction that the phase began with", async () => {
    const { store } = await database();
    const entry = newEntry();
    const { id, fence } = entry;
    await store.claim(entry, 60_000);
    const record = { position: 0, kind: "phase" as const, name: "created", value: new Uint8Array([1]) };
    for (const last of ["recordPhase", "complete"] as const) {
      const lost = store.transaction(async (session) => {
        await session.enter(id, fence, limits);
        await session.tx.query("COMMIT");
        if (last === "complete") await session.complete(id, fence, completion());
        else await session.recordPhase(id, fence, record);
      });
      await expect(lost).rejects.toMatchObject({ kind: "transaction_lost" });
    }
    expect(await store.journal(id)).toEqual({ records: [], intents: [] });
    expect(await store.read(id)).toMatchObject({ state: "in_progress", recoveryPoint: null });
  });

  it("survives savepoints of the handler", async () => {
    const { store } = await database();
    const entry = newEntry({ runKind: "transaction" });
    await store.transaction(async (session) => {
      await session.lock(entry.id, entry.fingerprint, limits);
      await session.tx.query("SAVEPOINT a");
      await session.tx.query("SELECT 1 / 0").catch(() => {});
      await session.tx.query("ROLLBACK TO a");
      await session.insertFinished(entry, completion());
    });
    expect(await store.read(entry.id)).toMatchObject({ state: "succeeded" });
  });

  it("is aborted, not committed, when the handler swallowed an SQL error and nothing of ours came after", async () => {
    const { store } = await database();
    const swallowed = store.transaction(async ({ tx }) => {
      await tx.query("INSERT INTO business (key) VALUES ('x')");
      await tx.query("SELECT 1 / 0").catch(() => {});
    });
    await expect(swallowed).rejects.toMatchObject({ kind: "aborted" });
  });

  it("refuses a session that is used after its transaction", async () => {
    const { store } = await database();
    const session = await store.transaction(async (open) => open);
    await expect(session.read(newEntry().id)).rejects.toMatchObject({ kind: "transaction_lost" });
  });
});

describe("retention (V24)", () => {
  it("counts from the completion, however long the operation took", async () => {
    const { url, store } = await database();
    const entry = newEntry();
    await store.claim(entry, 60_000);
    await passTime(url, 10_000);
    await store.complete(entry.id, entry.fence, completion({ retentionMs: 10_000 }));
    await passTime(url, 9_000);
    expect(await store.read(entry.id)).toMatchObject({ state: "succeeded", clock: { expired: false } });
    await passTime(url, 2_000);
    expect(await store.read(entry.id)).toMatchObject({ clock: { expired: true } });
  });
});

describe("lost connections", () => {
  const drivers: Record<string, (url: string) => Driver<unknown>> = {
    pg: (url) => fromPg(testPool(url, { max: 2 })) as Driver<unknown>,
    "postgres-js": (url) => {
      const sql = postgres(url, { max: 2, onnotice: () => {} });
      atEnd(() => sql.end({ timeout: 1 }));
      return fromPostgresJs(sql) as Driver<unknown>;
    },
  };
  for (const [name, connect] of Object.entries(drivers)) {
    it(`says that the commit is unknown when its answer was lost, and the entry then tells (${name})`, async () => {
      const { url } = await createDatabase();
      const { port } = await sharedServer();
      const proxy = await cuttingProxy(port);
      atEnd(() => proxy.close());
      const store = postgresStore(connect(url.replace(`:${port}/`, `:${proxy.port}/`)));
      const entry = newEntry({ runKind: "transaction" });
      const lost = store.transaction(async (session) => {
        await session.lock(entry.id, entry.fingerprint, limits);
        await session.insertFinished(entry, completion());
        proxy.loseNextCommitAnswer();
      });
      await expect(lost).rejects.toMatchObject({ kind: "commit_unknown" });
      expect(await store.read(entry.id)).toMatchObject({ state: "succeeded" });
    });

    it(`says unavailable when the connection was lost before COMMIT (${name})`, async () => {
      const { url } = await createDatabase();
      const store = postgresStore(connect(url));
      const entry = newEntry({ runKind: "transaction" });
      const lost = store.transaction(async (session) => {
        await session.lock(entry.id, entry.fingerprint, limits);
        await query(url, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'");
        await session.insertFinished(entry, completion());
      });
      await expect(lost).rejects.toMatchObject({ kind: "unavailable" });
      expect(await store.read(entry.id).catch(() => store.read(entry.id))).toBeNull();
    });
  }

  it("lets the server end a transaction that idles too long, with nothing kept", async () => {
    const { url, store } = await database();
    const entry = newEntry({ runKind: "transaction" });
    const idle = store.transaction(async (session) => {
      await session.lock(entry.id, entry.fingerprint, { lockTimeoutMs: 1_000, idleTimeoutMs: 50 });
      while ((await query(url, "SELECT FROM pg_locks WHERE locktype = 'advisory'")).length > 0) await sleep(10);
      await session.insertFinished(entry, completion());
    });
    await expect(idle).rejects.toMatchObject({ kind: expect.stringMatching(/^(?:timeout|unavailable)$/) });
    expect(await store.read(entry.id)).toBeNull();
  });

  it("leaves the errors of other services to the handler's own handling", async () => {
    const { store } = await database();
    const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    const failing = store.transaction(async () => {
      throw refused;
    });
    await expect(failing).rejects.toBe(refused);
  });
});

describe("a server that stops and comes back", () => {
  it("is unavailable meanwhile, crashes nothing, and serves again", async () => {
    const server = await startTestServer();
    atEnd(() => server.close());
    const { url } = await createDatabase({ server });
    const store = postgresStore(fromPg(testPool(url)));
    const entry = newEntry();
    await store.claim(entry, 60_000);
    await server.stop();
    for (const failing of [store.read(entry.id), store.claim(newEntry(), 1_000), store.transaction(async () => {})]) {
      await expect(failing).rejects.toMatchObject({ kind: "unavailable" });
    }
    await server.start();
    expect(await store.read(entry.id)).toMatchObject({ state: "in_progress" });
  });

  it("remembers a claim and a finished entry through its crash, even where commits are asynchronous by default", async () => {
    // Nobody else writes the log out, so that only a synchronous commit can have survived.
    const server = await startTestServer({ settings: { synchronous_commit: "off", wal_writer_delay: "10s" } });
    atEnd(() => server.close());
    const { url } = await createDatabase({ server });
    await query(url, BUSINESS);
    const store = postgresStore(fromPg(testPool(url)));
    await query(url, "INSERT INTO business (key) VALUES ('asynchronous')");
    const claimed = newEntry();
    const finished = newEntry({ runKind: "transaction" });
    await store.transaction(async (session) => {
      await session.lock(finished.id, finished.fingerprint, limits);
      await session.insertFinished(finished, completion());
    });
    await store.claim(claimed, 60_000);
    await query(url, "INSERT INTO business (key) VALUES ('lost')");
    await server.restart("immediate");
    expect(await store.read(claimed.id).catch(() => store.read(claimed.id))).toMatchObject({ state: "in_progress" });
    expect(await store.read(finished.id)).toMatchObject({ state: "succeeded" });
    expect(await query(url, "SELECT key FROM business")).toEqual([{ key: "asynchronous" }]);
  });
});

describe("connections (Q6)", () => {
  it("keeps one free of transactions, so that look-ups and renewals pass while they all hang", async () => {
    const { url } = await createDatabase();
    const store = postgresStore(fromPg(testPool(url, { max: 3 })));
    const entry = newEntry();
    await store.claim(entry, 60_000);
    let open = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    let inside = 0;
    const hanging = Array.from({ length: 6 }, () =>
      store.transaction(async () => {
        inside += 1;
        await opened;
      }),
    );
    while (inside < 2) await sleep(5);
    expect(await store.renew(entry.id, entry.fence, 60_000)).toBe(true);
    expect(await store.read(entry.id)).not.toBeNull();
    const insideMeanwhile = inside;
    open();
    await Promise.all(hanging);
    expect([insideMeanwhile, inside]).toEqual([2, 6]);
  });

  it("renews over the control driver where one is given, and says what it can promise", async () => {
    const { url } = await createDatabase();
    const driver = fromPg(testPool(url, { max: 1 }));
    const control = fromPg(testPool(url, { max: 1 })) as Driver<unknown>;
    expect(postgresStore(driver).traits).toEqual({ connections: 1, renews: false, abandons: true });
    expect(postgresStore({ ...driver, connections: null }).traits.renews).toBe("unknown");
    const store = postgresStore(driver, { control });
    expect(store.traits.renews).toBe(true);
    const entry = newEntry();
    await store.claim(entry, 60_000);
    await store.transaction(async () => {
      expect(await store.renew(entry.id, entry.fence, 60_000)).toBe(true);
    });
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

describe("records cannot be lost by a release", () => {
  it("keeps an entry whose intent was committed while its release was on the way", async () => {
    const { url, store } = await database();
    const entry = newEntry();
    const { id, fence } = entry;
    await store.claim(entry, 60_000);
    // The release meets an intent that is open but not yet committed: its snapshot shows nothing recorded.
    const other = new pg.Client({ connectionString: url });
    await other.connect();
    await other.query("BEGIN");
    await other.query("SELECT FROM oncekey.entry WHERE id = $1 FOR NO KEY UPDATE", [Buffer.from(id)]);
    await other.query(
      `INSERT INTO oncekey.intent (entry_id, call, generation, derived_key, request_digest, fence, started_at)
       VALUES ($1, 'authorize', 1, 'k', sha256('r'), $2, now())`,
      [Buffer.from(id), Buffer.from(fence)],
    );
    const releasing = store.release(id, fence, false);
    while ((await query(url, "SELECT FROM pg_locks WHERE NOT granted")).length === 0) await sleep(5);
    await other.query("COMMIT");
    await other.end();
    expect(await releasing).toBe(true);
    expect(await store.read(id)).toMatchObject({ state: "released" });
    expect((await store.journal(id)).intents).toHaveLength(1);
  });
});
