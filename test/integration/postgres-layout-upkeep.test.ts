import type { RunKind } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import {
  changeLayout,
  type Driver,
  maintainLayout,
  postgresStore,
  printGrants,
  storeLayout,
  storeStatus,
} from "oncekey/postgres";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { createDatabase, query, testPool } from "../support/postgres.ts";
import { completion, newEntry } from "../support/store-values.ts";
import { RUN_KINDS } from "./support/orders.ts";
import { effects, ordersDatabase } from "./support/rows.ts";
import { startWorkers, type WorkerAnswer } from "./support/workers.ts";

async function partitioned() {
  const { url } = await createDatabase();
  const pool = testPool(url, { max: 8 });
  const driver = fromPg(pool);
  await changeLayout(driver, "partitioned");
  const store = postgresStore(driver, { groups: false });
  await store.read(newEntry().id);
  return { url, pool, driver, store };
}

/** Partitions that are past, with a row each; and the newest of those to come is not there yet. */
async function agedBy(url: string, count: number): Promise<void> {
  const day = (index: number) => `timestamptz '2020-01-01' + ${index} * interval '1 day'`;
  for (let index = 1; index <= count; index++) {
    const [from = "", to = ""] = [index, index + 1].map((at) => `2020-01-0${at}`);
    await query(
      url,
      `CREATE TABLE oncekey.outcome_${index} PARTITION OF oncekey.outcome FOR VALUES FROM ('${from}') TO ('${to}')`,
      `INSERT INTO oncekey.outcome_partition VALUES ('${from}', '${to}', 'outcome_${index}')`,
      `INSERT INTO oncekey.outcome (created_at, completed_at, expires_at, operation_version, status, outcome, id, fence, seed,
         fingerprint, state, run_kind, tenant, operation, key)
       SELECT ${day(index - 1)}, ${day(index - 1)}, ${day(index - 1)} + interval '1 hour', 1, 201, '\\x01',
         sha256('${index}'), '\\x${"00".repeat(16)}', '\\x${"00".repeat(16)}', '\\x01', 'succeeded', 'capture', 'acme', 'o', 'k'`,
    );
  }
  const [newest] = await query(url, "SELECT name FROM oncekey.outcome_partition ORDER BY to_at DESC LIMIT 1");
  await query(
    url,
    `DROP TABLE oncekey.${newest?.name}`,
    `DELETE FROM oncekey.outcome_partition WHERE name = '${newest?.name}'`,
  );
}

const tables = async (url: string) =>
  (await query(url, "SELECT relname FROM pg_class WHERE relname ~ '^outcome_[0-9]+$' AND relkind = 'r'")).map(
    ({ relname }) => String(relname),
  );

/** What every round has to leave behind: all that is to come, nothing that is past, no table that nobody knows. */
async function expectOrder(driver: Driver<pg.PoolClient>, url: string): Promise<void> {
  const layout = await storeLayout(driver);
  expect(layout).toMatchObject({ name: "partitioned", guarded: true, behind: false });
  expect(layout.partitions).toHaveLength(3);
  for (const { state, to } of layout.partitions) {
    expect(state).toBe("attached");
    expect(to.getTime()).toBeGreaterThan(Date.UTC(2020, 1));
  }
  expect((await tables(url)).sort()).toEqual(layout.partitions.map(({ name }) => name).sort());
}

const freeLease = (url: string) => query(url, "UPDATE oncekey.layout SET maintained_until = NULL");
const waiting = (url: string, of: string) =>
  query(
    url,
    `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${of}%' AND pid <> pg_backend_pid()`,
  );

/** A maintainer that is gone before its n-th statement: it says nothing more, and its transaction is rolled back. */
function dyingAt(driver: Driver<pg.PoolClient>, nth: number) {
  const state = { said: 0 };
  const run: Driver<pg.PoolClient>["run"] = (sql, parameters, tx) => {
    state.said++;
    return state.said >= nth ? Promise.reject(new Error("gone")) : driver.run(sql, parameters, tx);
  };
  return { driver: { ...driver, run }, state };
}

describe("upkeep of partitions", () => {
  it("drops what is past, whole, makes what is to come, and then has nothing to do", async () => {
    const { url, driver, store } = await partitioned();
    await agedBy(url, 3);
    expect((await storeLayout(driver)).behind).toBe(false);
    expect(await store.maintain()).toBe(true);
    await expectOrder(driver, url);
    expect(await store.maintain()).toBe(false);
    await agedBy(url, 2);
    expect(await maintainLayout(driver)).toEqual({ kind: "maintained", created: 1, dropped: 2 });
    await expectOrder(driver, url);
  });

  it("goes on from wherever a maintainer died", async () => {
    const { url, driver } = await partitioned();
    let died = true;
    for (let nth = 1; died; nth++) {
      await agedBy(url, 2);
      const dying = dyingAt(driver, nth);
      await maintainLayout(dying.driver).then(
        () => undefined,
        () => undefined,
      );
      died = dying.state.said >= nth;
      await freeLease(url);
      await maintainLayout(driver);
      await expectOrder(driver, url);
    }
  });

  it("claims and outcomes go on while a detach waits for a long transaction; cut off there, it is finished later", async () => {
    const { url, driver, store } = await partitioned();
    await agedBy(url, 1);
    const long = new pg.Client({ connectionString: url });
    await long.connect();
    await long.query("BEGIN");
    await long.query("SELECT count(*) FROM oncekey.outcome");
    const round = maintainLayout(driver);
    let [waiter] = await waiting(url, "CONCURRENTLY");
    while (waiter === undefined) [waiter] = await waiting(url, "CONCURRENTLY");
    for (let index = 0; index < 20; index++) {
      const entry = newEntry();
      expect(await store.claim(entry, 60_000)).not.toBeNull();
      expect(await store.complete(entry.id, entry.fence, completion())).toBe(true);
      expect(await store.read(entry.id)).toMatchObject({ state: "succeeded" });
    }
    expect(await maintainLayout(driver)).toEqual({ kind: "busy" });
    expect((await storeLayout(driver)).partitions[0]).toMatchObject({ name: "outcome_1", state: "pending" });
    const cut = expect(round).rejects.toMatchObject({ kind: "unavailable" });
    await query(url, `SELECT pg_terminate_backend(${waiter.pid})`);
    await cut;
    expect((await storeLayout(driver)).partitions[0]).toMatchObject({ name: "outcome_1", state: "pending" });
    // The next maintainer does not wait where the first one did, with a lock that everybody who looks would wait for.
    await freeLease(url);
    expect(await maintainLayout(driver)).toEqual({ kind: "maintained", created: 0, dropped: 0 });
    expect((await storeStatus(driver)).layout.partitions[0]).toMatchObject({ name: "outcome_1", state: "pending" });
    await long.query("COMMIT");
    await long.end();
    expect(await maintainLayout(driver)).toMatchObject({ dropped: 1 });
    await expectOrder(driver, url);
  });

  it("a signal ends the wait of a detach, which the server then finishes alone", async () => {
    const { url, driver } = await partitioned();
    await agedBy(url, 1);
    const long = new pg.Client({ connectionString: url });
    await long.connect();
    await long.query("BEGIN");
    await long.query("SELECT count(*) FROM oncekey.outcome");
    const stopping = new AbortController();
    const round = maintainLayout(driver, { signal: stopping.signal });
    while ((await waiting(url, "CONCURRENTLY")).length === 0);
    stopping.abort();
    expect(await round).toMatchObject({ kind: "maintained", dropped: 0 });
    await long.query("COMMIT");
    await long.end();
    while ((await storeLayout(driver)).partitions[0]?.state === "pending");
    expect(await maintainLayout(driver)).toMatchObject({ dropped: 1 });
    await expectOrder(driver, url);
  });

  it("a role that does not own the tables leaves upkeep and change to one that does", async () => {
    const { url } = await partitioned();
    await agedBy(url, 1);
    const role = `api_${new URL(url).pathname.slice(1)}`;
    await query(url, `CREATE ROLE "${role}" LOGIN`, printGrants({ api: role }));
    const driver = fromPg(testPool(url.replace("postgres@", `${role}@`)));
    expect(await maintainLayout(driver)).toEqual({ kind: "not_owner" });
    expect(await postgresStore(driver).maintain()).toBe(false);
    await expect(changeLayout(driver, "plain")).rejects.toMatchObject({ code: "oncekey_config_invalid" });
    const store = postgresStore(driver, { groups: false });
    const entry = newEntry();
    await store.read(entry.id);
    await store.claim(entry, 60_000);
    expect(await store.complete(entry.id, entry.fence, completion())).toBe(true);
    expect(await store.read(entry.id)).toMatchObject({ state: "succeeded" });
  });

  it("partitions that another role made belong to the owner of the tables, who can drop them", async () => {
    const { url } = await createDatabase();
    const owner = `Owner of ${new URL(url).pathname.slice(1)}`;
    const made = await query(
      url,
      "SELECT relname FROM pg_class WHERE relname ~ '^(outcome|layout|entry)' AND relkind IN ('r', 'p')",
    );
    await query(
      url,
      `CREATE ROLE "${owner}" LOGIN`,
      `GRANT USAGE, CREATE ON SCHEMA oncekey TO "${owner}"`,
      ...made.map(({ relname }) => `ALTER TABLE oncekey.${relname} OWNER TO "${owner}"`),
    );
    await changeLayout(fromPg(testPool(url)), "partitioned", { widthMs: 1_000, retentionMs: 1_000 });
    const driver = fromPg(
      testPool(url, { user: owner, connectionString: url.replace("postgres@", `${encodeURIComponent(owner)}@`) }),
    );
    const [first] = (await storeLayout(driver)).partitions;
    while ((await tables(url)).includes(String(first?.name))) await maintainLayout(driver);
    expect((await storeLayout(driver)).partitions.length).toBeGreaterThan(0);
  });

  it("after the change back the last partition takes the guard with it, and older releases may start again", async () => {
    const { url } = await createDatabase();
    const driver = fromPg(testPool(url));
    const made = await changeLayout(driver, "partitioned", { widthMs: 1_000, retentionMs: 2_000 });
    expect(made).toMatchObject({ widthMs: 1_000, retentionMs: 2_000, guarded: true });
    expect(await changeLayout(driver, "plain")).toMatchObject({ name: "plain", guarded: true, behind: false });
    while ((await maintainLayout(driver)).kind !== "idle");
    expect(await storeLayout(driver)).toMatchObject({ guarded: false, partitions: [], aheadUntil: null });
    expect(await tables(url)).toEqual([]);
    const [facts] = await query(
      url,
      `SELECT (SELECT tgenabled FROM pg_trigger WHERE tgname = 'entry_one') AS guard,
        (SELECT max(minimum_reader) FROM oncekey.migration) AS least`,
    );
    expect(facts).toEqual({ guard: "D", least: 1 });
  });

  it("refuses a width that would make too many partitions, and times that are no whole seconds", async () => {
    const { driver } = await partitioned();
    const change = (widthMs: number) => changeLayout(driver, "partitioned", { widthMs, retentionMs: 86_400_000 });
    await expect(change(1_000)).rejects.toThrow(/wider/);
    await expect(change(1_500)).rejects.toThrow(/whole seconds/);
  });
});

describe("the change of layout, both ways, while processes run traffic", () => {
  const CHANGES = ["partitioned", "plain", "partitioned", "plain"] as const;
  const KEYS = 12;

  it("no error, no second effect, and every answer is replayed byte by byte in whatever layout comes next", async () => {
    const url = await ordersDatabase();
    const driver = fromPg(testPool(url));
    const fleet = await startWorkers(4, { url, poolSize: 4 });
    const answers = new Map<string, Set<string>>();
    const kinds = new Set<string>();
    const note = (key: string, { kind, answer }: WorkerAnswer) => {
      kinds.add(kind);
      answers.set(key, (answers.get(key) ?? new Set()).add(answer));
    };
    const everywhere = (kind: RunKind, key: string) =>
      Promise.all(fleet.map(async (worker) => note(key, await worker.run({ kind, key }))));
    const keysOf = (round: number) =>
      RUN_KINDS.flatMap((kind) => Array.from({ length: KEYS }, (_, n) => [kind, `${kind}-${round}-${n}`] as const));
    const traffic = (round: number) => Promise.all(keysOf(round).map(([kind, key]) => everywhere(kind, key)));
    await traffic(0);
    for (const [round, layout] of CHANGES.entries()) {
      await Promise.all([traffic(round + 1), traffic(round), changeLayout(driver, layout)]);
      await traffic(round + 1);
    }
    expect([...kinds].sort()).toEqual(["completed", "replayed"]);
    for (const [key, given] of answers) {
      expect(given.size, key).toBe(1);
      expect(await effects(url, key), key).toHaveLength(1);
    }
    const [{ apart } = {}] = await query(url, "SELECT count(*)::int AS apart FROM oncekey.outcome");
    expect(apart).toBeGreaterThan(0);
    await Promise.all(fleet.map((worker) => worker.kill()));
  });
});
