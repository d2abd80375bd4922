import { readFileSync } from "node:fs";
import { fromPg } from "oncekey/drivers/pg";
import {
  entriesById,
  entryResolutions,
  inspectEntries,
  listMessages,
  migrate,
  postgresStore,
  printGrants,
  printMigrations,
  recordedSummary,
  storeStatus,
} from "oncekey/postgres";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { dumpSchema } from "../../scripts/dump-schema.ts";
import { createDatabase, query, type TestDatabaseOptions, testPool } from "../support/postgres.ts";
import { completion, limits, newEntry, newMessage } from "../support/store-values.ts";

async function emptyDatabase(options: TestDatabaseOptions = {}) {
  const { url } = await createDatabase({ ...options, migrated: false });
  return { url, driver: fromPg(testPool(url)) };
}

const skew = expect.objectContaining({ code: "oncekey_schema_skew" });

describe("migrate()", () => {
  it("makes the schema of sql/schema.sql once, and finds nothing to do the second time", async () => {
    const { url, driver } = await emptyDatabase();
    expect((await migrate(driver)).applied).toEqual([
      { number: 1, name: "entries" },
      { number: 2, name: "recovery_and_messages" },
      { number: 3, name: "long_bodies_and_erasure" },
      { number: 4, name: "partitioned_outcomes" },
      { number: 5, name: "console" },
    ]);
    expect((await migrate(driver)).applied).toEqual([]);
    expect(await dumpSchema((sql) => query(url, sql))).toBe(readFileSync("sql/schema.sql", "utf8"));
  });

  for (const isolation of ["read committed", "serializable"] as const) {
    it(`lets one of several processes do the work while the others wait (${isolation} by default)`, async () => {
      const { driver } = await emptyDatabase({ isolation });
      const results = await Promise.all(Array.from({ length: 6 }, () => migrate(driver)));
      expect(results.map(({ applied }) => applied.length).sort()).toEqual([0, 0, 0, 0, 0, 5]);
    });
  }

  it("uses another schema name throughout, beside the default one", async () => {
    const { url, driver } = await emptyDatabase();
    await migrate(driver, { schema: "once_b" });
    const store = postgresStore(driver, { schema: "once_b" });
    await store.start();
    const entry = newEntry();
    await store.claim(entry, 1_000);
    expect(await query(url, "SELECT count(*)::int AS n FROM once_b.entry")).toEqual([{ n: 1 }]);
    await expect(postgresStore(driver).start()).rejects.toMatchObject({ code: "oncekey_schema_missing" });
  });

  it("leaves nothing behind when it fails half way", async () => {
    const { url, driver } = await emptyDatabase();
    await query(url, "CREATE SCHEMA oncekey", "CREATE TABLE oncekey.outbox (id int)");
    await expect(migrate(driver)).rejects.toMatchObject({ code: "42P07" });
    expect(await query(url, "SELECT to_regclass('oncekey.entry') AS found")).toEqual([{ found: null }]);
  });

  it("refuses schema names that would depend on quoting, and PostgreSQL's own", async () => {
    const { driver } = await emptyDatabase();
    for (const schema of ["", "Once", 'a"b', "a b", "pg_once", "information_schema", "a".repeat(64)]) {
      await expect(migrate(driver, { schema })).rejects.toMatchObject({ code: "oncekey_config_invalid" });
      expect(() => postgresStore(driver, { schema })).toThrow(/schema name/);
    }
  });
});

describe("a database of the first release", () => {
  const hex = (bytes: Uint8Array) => `'\\x${Buffer.from(bytes).toString("hex")}'::bytea`;

  /** A row as the first release wrote it. */
  function oldRow({ id, fence, seed, fingerprint, key }: ReturnType<typeof newEntry>, columns: string, values: string) {
    return `INSERT INTO oncekey.entry (id, fence, seed, fingerprint, tenant, operation, key, run_kind, operation_version,
        created_at, input, ${columns})
      VALUES (${[id, fence, seed, fingerprint].map(hex).join(", ")}, 'acme', 'invoices.create', '${key}', 'phases', 1,
        now(), '\\x01', ${values})`;
  }

  async function firstRelease() {
    const { url, driver } = await emptyDatabase();
    await query(url, printMigrations().replace(printMigrations({ from: 2 }), ""));
    return { url, driver };
  }

  const message = (
    id: string,
  ) => `INSERT INTO oncekey.outbox (id, topic, payload, tenant, entry_id, created_at, available_at)
    VALUES ('${id}', 't', '{}', 'acme', sha256('e'), now(), now())`;

  it("keeps its entries, intents and messages through the migration, and goes on with them", async () => {
    const { url, driver } = await firstRelease();
    const [running, lapsed, unknown] = [newEntry(), newEntry(), newEntry()];
    await query(
      url,
      oldRow(running, "state, lease_until", "'in_progress', now() + interval '1 minute'"),
      oldRow(lapsed, "state, lease_until", "'in_progress', now() - interval '1 minute'"),
      oldRow(unknown, "state, reason, not_before", "'needs_recovery', 'gave up', now() - interval '1 hour'"),
      `INSERT INTO oncekey.intent (entry_id, call, generation, derived_key, request_digest, fence, started_at)
       VALUES (${hex(lapsed.id)}, 'authorize', 1, 'k', sha256('r'), ${hex(lapsed.fence)}, now())`,
      message("m1"),
    );
    expect((await migrate(driver)).applied.map(({ number }) => number)).toEqual([2, 3, 4, 5]);
    const store = postgresStore(driver);
    await store.start();
    expect(await store.complete(running.id, running.fence, completion())).toBe(true);
    const target = { operation: "invoices.create", runKind: "phases" as const, operationVersion: 1 };
    expect((await store.takeDue(target, 10, 60_000)).map(({ entry }) => entry?.key)).toEqual([lapsed.key]);
    expect((await store.journal(lapsed.id)).intents).toMatchObject([{ state: "open", form: null, settlesInMs: null }]);
    // Nothing says when its calls settle, or when to ask: a retry or a person does.
    expect(await store.read(unknown.id)).toMatchObject({ clock: { sweepInMs: null, settlesInMs: null } });
    const claimed = await store.outbox.claim({ topics: ["t"], limit: 10, leaseMs: 60_000 });
    expect(claimed).toMatchObject([{ id: "m1", client: null, context: null, correlation: null }]);
  });

  it("waits for an open transaction of the first release, whose code can still claim, complete and send after it", async () => {
    const { url, driver } = await firstRelease();
    const [open, later] = [newEntry(), newEntry()];
    const other = new pg.Client({ connectionString: url });
    await other.connect();
    await other.query("BEGIN");
    await other.query(oldRow(open, "state, lease_until", "'in_progress', now() + interval '1 minute'"));
    const migrated = migrate(driver);
    while ((await query(url, "SELECT FROM pg_locks WHERE NOT granted AND relation IS NOT NULL")).length === 0);
    await other.query("COMMIT");
    expect((await migrated).applied).toHaveLength(4);
    await other.query(oldRow(later, "state, lease_until", "'in_progress', now() + interval '1 minute'"));
    await other.query(message("m2"));
    for (const { id } of [open, later]) {
      const done = await other.query(
        `UPDATE oncekey.entry SET state = 'succeeded', status = 201, outcome = '\\x01', lease_until = NULL,
           completed_at = now(), expires_at = now() + interval '1 hour' WHERE id = ${hex(id)}`,
      );
      expect(done.rowCount).toBe(1);
    }
    await other.end();
    expect(await storeStatus(driver)).toMatchObject({
      schemaVersion: 5,
      entries: { succeeded: 2 },
      pendingMessages: 1,
    });
  });
});

describe("version skew", () => {
  async function migratedWith(...statements: string[]) {
    const { url } = await createDatabase();
    await query(url, ...statements);
    const driver = fromPg(testPool(url));
    return { driver, store: postgresStore(driver) };
  }
  const newer = (minimumReader: number) =>
    `INSERT INTO oncekey.migration (number, name, checksum, minimum_reader) VALUES (900, 'later', 'x', ${minimumReader})`;

  it("start() asks for a migration where the database lacks one", async () => {
    const { store } = await migratedWith("DELETE FROM oncekey.migration");
    await expect(store.start()).rejects.toEqual(skew);
    await expect(store.start()).rejects.toThrow(/oncekey migrate/);
  });

  it("start() and migrate() refuse a database whose newer schema demands a newer version", async () => {
    const { store, driver } = await migratedWith(newer(900));
    await expect(store.start()).rejects.toEqual(skew);
    await expect(migrate(driver)).rejects.toEqual(skew);
  });

  it("start() accepts a newer schema that says this version may still read it", async () => {
    const { store } = await migratedWith(newer(1));
    await expect(store.start()).resolves.toBeUndefined();
  });

  it("refuses a migration that was applied in another form", async () => {
    const { store, driver } = await migratedWith("UPDATE oncekey.migration SET checksum = 'other'");
    await expect(store.start()).rejects.toEqual(skew);
    await expect(migrate(driver)).rejects.toEqual(skew);
  });
});

describe("printMigrations()", () => {
  it("prints SQL that makes the same schema with any tool", async () => {
    const { url, driver } = await emptyDatabase();
    await query(url, printMigrations());
    expect(await dumpSchema((sql) => query(url, sql))).toBe(readFileSync("sql/schema.sql", "utf8"));
    await postgresStore(driver).start();
    expect((await migrate(driver)).applied).toEqual([]);
  });

  it("puts the schema's name in its place, and starts where it is told to", () => {
    expect(printMigrations({ schema: "once_b" })).not.toMatch(/\boncekey\./);
    expect(printMigrations({ from: 2 })).not.toContain("CREATE TABLE oncekey.entry");
    expect(printMigrations({ from: 6 })).toBe("");
  });
});

describe("printGrants()", () => {
  async function asRole(part: "api" | "worker" | "console") {
    const { url } = await createDatabase();
    const role = `${part}_${new URL(url).pathname.slice(1)}`;
    await query(url, `CREATE ROLE "${role}" LOGIN`, printGrants({ [part]: role }));
    return { url, driver: fromPg(testPool(url.replace("postgres@", `${role}@`))) };
  }

  for (const part of ["api", "worker"] as const) {
    it(`lets the ${part} role do all that the engine does`, async () => {
      const { driver } = await asRole(part);
      const store = postgresStore(driver);
      await store.start();
      const entry = newEntry();
      const { id, fence } = entry;
      await store.claim(entry, 60_000);
      await store.openIntent(id, fence, {
        call: "a",
        generation: 1,
        derivedKey: "k",
        requestDigest: new Uint8Array(32),
        form: "settles",
        settlesWithinMs: 1_000,
      });
      await store.recordCall(id, fence, { position: 0, kind: "call", name: "a", value: new Uint8Array([1]) });
      expect(await store.complete(id, fence, completion({ retentionMs: 0 }))).toBe(true);
      expect(await store.purge(10)).toBe(1);
      await store.transaction(async (session) => {
        const finished = newEntry({ runKind: "transaction" });
        await session.lock(finished.id, finished.fingerprint, limits);
        await session.send(newMessage({ id: "m1", orderBy: "o", entryId: finished.id }));
        await session.insertFinished(finished, completion());
      });
      await takesArrivalsIn(store);
      await store.announce([{ operation: "a", runKind: "phases", operationVersion: 1 }]);
      expect(await store.takeDue({ operation: "a", runKind: "phases", operationVersion: 1 }, 1, 1_000)).toEqual([]);
      await expect(driver.run("CREATE TABLE oncekey.mine (id int)", [])).rejects.toMatchObject({ code: "42501" });
      await expect(driver.run("DELETE FROM oncekey.migration", [])).rejects.toMatchObject({ code: "42501" });
    });
  }

  async function takesArrivalsIn(store: ReturnType<typeof postgresStore<pg.PoolClient>>): Promise<void> {
    const [digest, producer, subject] = [newEntry().id, newEntry().id, newEntry().id];
    const delivery = { tenant: "acme", source: "queue", id: "1" };
    await store.transaction(async (session) => {
      expect(await session.tryLocks([digest, producer], limits)).toEqual([true, true]);
      const number = { epoch: 0n, sequence: 0n };
      const from = { tenant: "acme", source: "queue", producer: "p" };
      expect(await session.moveSubject(subject, { tenant: "acme", source: "queue", subject: "s" }, 1n)).toBe(true);
      await session.moveProducer(producer, from, await session.producer(producer), number);
      await session.accept([{ digest, delivery, value: null, keepMs: 0 }]);
    });
    expect(await store.purgeDeliveries(10)).toBe(1);
  }

  it("lets the worker deliver, and settle by hand, but not change what the audit says", async () => {
    const { driver } = await asRole("worker");
    const store = postgresStore(driver);
    await store.transaction((session) => session.send(newMessage({ orderBy: "o" })));
    const [message] = await store.outbox.claim({ topics: ["*"], limit: 1, leaseMs: 60_000 });
    expect(message && (await store.outbox.delivered(message))).toBe(true);
    expect(await store.outbox.purge(10, 0)).toBe(1);
    const { id, fence } = newEntry();
    const entry = newEntry({ id, fence });
    await store.claim(entry, 60_000);
    await store.markUnknown(id, fence, { reason: "threw", provisional: null, sweepInMs: null, quietMs: null });
    const decided = {
      verdict: "released" as const,
      completion: null,
      attempt: null,
      force: true,
      by: "ann",
      note: null,
    };
    expect(await store.resolve(id, { ...decided, fence: newEntry().fence })).toMatchObject({ kind: "resolved" });
    for (const change of ["DELETE FROM", "UPDATE"]) {
      const set = change === "UPDATE" ? "SET resolved_by = 'bob'" : "";
      const changed = driver.run(`${change} oncekey.resolution ${set}`, []);
      await expect(changed).rejects.toMatchObject({ code: "42501" });
    }
  });

  it("shows the console everything but what clients sent and were answered", async () => {
    const { url, driver } = await asRole("console");
    const entry = newEntry();
    await postgresStore(fromPg(testPool(url))).claim(entry, 60_000);
    expect(await inspectEntries(driver, { key: entry.key, tenant: entry.tenant })).toMatchObject([
      { key: entry.key, state: "in_progress", id: Buffer.from(entry.id).toString("hex") },
    ]);
    expect(await inspectEntries(driver, { key: entry.key, tenant: "globex" })).toEqual([]);
    expect(await storeStatus(driver)).toMatchObject({ entries: { in_progress: 1, succeeded: 0 }, lapsed: 0 });
    expect(await listMessages(driver)).toEqual([]);
    const id = Buffer.from(entry.id).toString("hex");
    expect(await entriesById(driver, id.slice(0, 9))).toMatchObject([{ id }]);
    expect(await recordedSummary(driver, id)).toEqual({ phases: [], intents: [] });
    expect(await entryResolutions(driver, id)).toEqual([]);
    const hidden = [
      ...["outcome", "input", "context", "fence", "seed"].map((column) => `SELECT ${column} FROM oncekey.entry`),
      ...["payload", "context", "key"].map((column) => `SELECT ${column} FROM oncekey.outbox`),
      "SELECT value FROM oncekey.inbox",
      "SELECT value FROM oncekey.phase",
      "SELECT derived_key FROM oncekey.intent",
    ];
    for (const sql of hidden) await expect(driver.run(sql, [])).rejects.toMatchObject({ code: "42501" });
    await expect(driver.run("UPDATE oncekey.entry SET state = state", [])).rejects.toMatchObject({ code: "42501" });
  });

  it("start() says what to grant where the role has nothing", async () => {
    const { url } = await createDatabase();
    const role = `none_${new URL(url).pathname.slice(1)}`;
    await query(url, `CREATE ROLE "${role}" LOGIN`);
    const store = postgresStore(fromPg(testPool(url.replace("postgres@", `${role}@`))));
    await expect(store.start()).rejects.toThrow(/printGrants/);
  });
});
