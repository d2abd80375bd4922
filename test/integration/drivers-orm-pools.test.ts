import { EntitySchema, MikroORM } from "@mikro-orm/postgresql";
import { fromMikroOrm } from "oncekey/drivers/mikro-orm";
import { fromSequelize } from "oncekey/drivers/sequelize";
import { fromTypeOrm } from "oncekey/drivers/typeorm";
import { type Driver, postgresStore, TransactionAbandoned, TransactionAborted } from "oncekey/postgres";
import { Sequelize } from "sequelize";
import { DataSource } from "typeorm";
import { describe, expect, it } from "vitest";
import { cuttingProxy } from "../support/cutting-proxy.ts";
import { gate } from "../support/gate.ts";
import { createDatabase, query, sharedServer } from "../support/postgres.ts";

interface Pooled {
  readonly driver: Driver<unknown>;
  close(): Promise<unknown>;
}

async function typeOrm(url: string, max: number): Promise<Pooled> {
  const extra = { connectionTimeoutMillis: 200 };
  const dataSource = await new DataSource({ type: "postgres", url, poolSize: max, extra }).initialize();
  return { driver: fromTypeOrm(dataSource) as Driver<unknown>, close: () => dataSource.destroy() };
}

async function sequelize(url: string, max: number): Promise<Pooled> {
  const client = new Sequelize(url, { logging: false, pool: { max, acquire: 200 } });
  return { driver: fromSequelize(client) as Driver<unknown>, close: () => client.close() };
}

async function mikroOrm(clientUrl: string, max: number): Promise<Pooled> {
  const entities = [new EntitySchema({ name: "nothing", properties: { id: { type: "text", primary: true } } })];
  const pool = { min: 0, max, acquireTimeoutMillis: 200 };
  const orm = await MikroORM.init({ clientUrl, entities, pool });
  return { driver: fromMikroOrm(orm) as Driver<unknown>, close: () => orm.close() };
}

describe.each([
  ["TypeORM", typeOrm],
  ["Sequelize", sequelize],
  ["MikroORM", mikroOrm],
])("the pool of %s", (_name, make) => {
  it("is of the size that was asked for", async () => {
    const { url } = await createDatabase({ migrated: false });
    const { driver, close } = await make(url, 7);
    expect(driver.connections).toBe(7);
    await close();
  });

  it("hands a new connection to who waits for one that was given up", async () => {
    const { url } = await createDatabase({ migrated: false });
    const { driver, close } = await make(url, 1);
    const pid = async (tx?: unknown) => (await driver.run("SELECT pg_backend_pid()::int AS pid", [], tx))[0]?.pid;
    const waits = gate();
    let first: unknown;
    const givenUp = driver.transaction(async (tx) => {
      first = await pid(tx);
      waits.open();
      throw new TransactionAbandoned("given up");
    });
    const waiting = waits.promise.then(() => pid());
    await expect(givenUp).rejects.toBeInstanceOf(TransactionAbandoned);
    expect(await waiting).not.toBe(first);
    await close();
  });

  it("that is used up, or finds no server, is an unavailable store", async () => {
    const { url } = await createDatabase();
    const { port } = await sharedServer();
    const proxy = await cuttingProxy(port);
    const { driver, close } = await make(url.replace(`:${port}/`, `:${proxy.port}/`), 1);
    // Without its turns, which would wait for the pool's one connection.
    const store = postgresStore({ ...driver, connections: null });
    const refused = async () => {
      await expect(store.read(new Uint8Array(32))).rejects.toMatchObject({ kind: "unavailable" });
      await expect(store.transaction(async () => {})).rejects.toMatchObject({ kind: "unavailable" });
    };
    await driver.transaction(refused);
    expect(await store.read(new Uint8Array(32))).toBeNull();
    await proxy.close();
    // The first use after the loss may meet the connection that is gone.
    await expect(store.read(new Uint8Array(32))).rejects.toMatchObject({ kind: "unavailable" });
    await refused();
    await close();
  });

  it("has no rows of a transaction whose COMMIT was not carried out", async () => {
    const { url } = await createDatabase({ migrated: false });
    await query(url, "CREATE TABLE deferred (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    const { driver, close } = await make(url, 2);
    const twice = driver.transaction(async (tx) => {
      await driver.run("INSERT INTO deferred VALUES (1), (1)", [], tx);
    });
    await expect(twice).rejects.toMatchObject({ code: "23505" });
    const swallowed = driver.transaction(async (tx) => {
      await driver.run("SELECT 1 / 0", [], tx).catch(() => {});
    });
    await expect(swallowed).rejects.toBeInstanceOf(TransactionAborted);
    expect(await driver.run("SELECT 1 AS one FROM deferred", [])).toEqual([]);
    await close();
  });
});

it("MikroORM: a context-aware entity manager is in the transaction inside its body", async () => {
  const { url } = await createDatabase({ migrated: false });
  const entities = [new EntitySchema({ name: "nothing", properties: { id: { type: "text", primary: true } } })];
  const orm = await MikroORM.init({ clientUrl: url, entities });
  const driver = fromMikroOrm(orm);
  const sql = "SELECT pg_current_xact_id()::text AS xact";
  await driver.transaction(async (tx) => {
    const [own] = await driver.run(sql, [], tx);
    expect(await orm.em.execute(sql)).toEqual([own]);
    expect(await orm.em.fork().execute(sql)).not.toEqual([own]);
  });
  await orm.close();
});
