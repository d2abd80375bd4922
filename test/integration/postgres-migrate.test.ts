import { readFileSync } from "node:fs";
import { fromPg } from "oncekey/drivers/pg";
import { inspectEntries, migrate, postgresStore, printGrants, printMigrations, storeStatus } from "oncekey/postgres";
import { describe, expect, it } from "vitest";
import { dumpSchema } from "../../scripts/dump-schema.ts";
import { createDatabase, query, type TestDatabaseOptions, testPool } from "../support/postgres.ts";
import { completion, limits, newEntry } from "../support/store-values.ts";

async function emptyDatabase(options: TestDatabaseOptions = {}) {
  const { url } = await createDatabase({ ...options, migrated: false });
  return { url, driver: fromPg(testPool(url)) };
}

const skew = expect.objectContaining({ code: "oncekey_schema_skew" });

describe("migrate()", () => {
  it("makes the schema of sql/schema.sql once, and finds nothing to do the second time", async () => {
    const { url, driver } = await emptyDatabase();
    expect((await migrate(driver)).applied).toEqual([{ number: 1, name: "entries" }]);
    expect((await migrate(driver)).applied).toEqual([]);
    expect(await dumpSchema((sql) => query(url, sql))).toBe(readFileSync("sql/schema.sql", "utf8"));
  });

  for (const isolation of ["read committed", "serializable"] as const) {
    it(`lets one of several processes do the work while the others wait (${isolation} by default)`, async () => {
      const { driver } = await emptyDatabase({ isolation });
      const results = await Promise.all(Array.from({ length: 6 }, () => migrate(driver)));
      expect(results.map(({ applied }) => applied.length).sort()).toEqual([0, 0, 0, 0, 0, 1]);
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
    expect(printMigrations({ from: 2 })).toBe("");
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
      });
      await store.recordCall(id, fence, { position: 0, kind: "call", name: "a", value: new Uint8Array([1]) });
      expect(await store.complete(id, fence, completion({ retentionMs: 0 }))).toBe(true);
      expect(await store.purge(10)).toBe(1);
      await store.transaction(async (session) => {
        const finished = newEntry({ runKind: "transaction" });
        await session.lock(finished.id, finished.fingerprint, limits);
        await session.send({
          id: "m1",
          topic: "t",
          payload: "{}",
          key: null,
          orderBy: null,
          delayMs: 0,
          tenant: "acme",
          entryId: finished.id,
        });
        await session.insertFinished(finished, completion());
      });
      await expect(driver.run("CREATE TABLE oncekey.mine (id int)", [])).rejects.toMatchObject({ code: "42501" });
      await expect(driver.run("DELETE FROM oncekey.migration", [])).rejects.toMatchObject({ code: "42501" });
    });
  }

  it("shows the console everything but what clients sent and were answered", async () => {
    const { url, driver } = await asRole("console");
    const entry = newEntry();
    await postgresStore(fromPg(testPool(url))).claim(entry, 60_000);
    expect(await inspectEntries(driver, { key: entry.key, tenant: entry.tenant })).toMatchObject([
      { key: entry.key, state: "in_progress", id: Buffer.from(entry.id).toString("hex") },
    ]);
    expect(await inspectEntries(driver, { key: entry.key, tenant: "globex" })).toEqual([]);
    expect(await storeStatus(driver)).toMatchObject({ entries: { in_progress: 1, succeeded: 0 }, lapsed: 0 });
    for (const column of ["outcome", "input", "context", "fence"]) {
      await expect(driver.run(`SELECT ${column} FROM oncekey.entry`, [])).rejects.toMatchObject({ code: "42501" });
    }
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
