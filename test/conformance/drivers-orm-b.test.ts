import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { MikroORM, EntitySchema as MikroSchema } from "@mikro-orm/postgresql";
import { fromMikroOrm } from "oncekey/drivers/mikro-orm";
import { fromSequelize } from "oncekey/drivers/sequelize";
import { fromTypeOrm } from "oncekey/drivers/typeorm";
import type { Driver } from "oncekey/postgres";
import { type DriverHarness, driverSuite } from "oncekey/testing";
import { DataTypes, Sequelize, type Transaction } from "sequelize";
import { DataSource, type EntityManager, EntitySchema } from "typeorm";
import { describe, expect, it } from "vitest";
import { cuttingProxy } from "../support/cutting-proxy.ts";
import { type Orm, ormSuite } from "../support/orm-suite.ts";
import { atEnd, createDatabase, query, sharedServer } from "../support/postgres.ts";

type Connect<Tx> = (url: string, connections: number) => Promise<Orm<Tx>>;

const typeOrmTables = {
  booking: new EntitySchema<{ number?: number; id: string }>({
    name: "booking",
    columns: { number: { type: "int", primary: true, generated: "increment" }, id: { type: "text" } },
  }),
  seat: new EntitySchema<{ id: string }>({ name: "seat", columns: { id: { type: "text", primary: true } } }),
};

const onTypeOrm: Connect<EntityManager> = async (url, poolSize) => {
  const dataSource = new DataSource({ type: "postgres", url, poolSize, entities: Object.values(typeOrmTables) });
  await dataSource.initialize();
  return {
    driver: fromTypeOrm(dataSource),
    insert: (tx, table, id) => tx.insert(typeOrmTables[table], { id }),
    execute: (tx, sql) => tx.query(sql),
    nested: (tx, body) => tx.transaction(body),
    close: () => dataSource.destroy(),
  };
};

const onSequelize: Connect<Transaction> = async (url, max) => {
  const sequelize = new Sequelize(url, { pool: { max }, logging: false });
  const options = { timestamps: false, freezeTableName: true };
  const number = { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true, autoIncrementIdentity: true };
  const tables = {
    booking: sequelize.define("booking", { number, id: DataTypes.TEXT }, options),
    seat: sequelize.define("seat", { id: { type: DataTypes.TEXT, primaryKey: true } }, options),
  };
  return {
    driver: fromSequelize(sequelize),
    insert: (transaction, table, id) => tables[table].create({ id }, { transaction }),
    execute: (transaction, sql) => sequelize.query(sql, { transaction }),
    nested: (transaction, body) => sequelize.transaction({ transaction }, body),
    close: () => sequelize.close(),
  };
};

const mikroTables = {
  booking: new MikroSchema<{ number?: number; id: string }>({
    name: "booking",
    properties: { number: { type: "number", primary: true, autoincrement: true }, id: { type: "text" } },
  }),
  seat: new MikroSchema<{ id: string }>({ name: "seat", properties: { id: { type: "text", primary: true } } }),
};

const onMikroOrm: Connect<MikroORM["em"]> = async (clientUrl, max) => {
  const orm = await MikroORM.init({ clientUrl, pool: { min: 0, max }, entities: Object.values(mikroTables) });
  return {
    driver: fromMikroOrm(orm),
    // Bookings are left for our own statements to flush.
    insert: async (tx, table, id) =>
      table === "booking" ? tx.persist(tx.create(mikroTables.booking, { id })) : tx.insert(mikroTables.seat, { id }),
    execute: (tx, sql) => tx.execute(sql),
    nested: (tx, body) => tx.transactional(body),
    close: () => orm.close(),
  };
};

const CONNECTIONS = 3;

let behind: Promise<{ proxy: Awaited<ReturnType<typeof cuttingProxy>>; url: string; proxied: string }> | undefined;

async function proxiedDatabase() {
  const { url } = await createDatabase({ migrated: false });
  const { port } = await sharedServer();
  const proxy = await cuttingProxy(port);
  atEnd(() => proxy.close());
  return { proxy, url, proxied: url.replace(`:${port}/`, `:${proxy.port}/`) };
}

/** Each case gets a pool of its own, through the proxy, on one database. */
function harness<Tx>(connect: Connect<Tx>): () => Promise<DriverHarness> {
  return async () => {
    behind ??= proxiedDatabase();
    const { proxy, url, proxied } = await behind;
    const { driver, execute, close } = await connect(proxied, CONNECTIONS);
    return {
      driver: driver as Driver<unknown>,
      execute: async (tx, sql) => void (await execute(tx as Tx, sql)),
      admin: (sql) => query(url, sql),
      loseNextCommitAnswer: () => proxy.loseNextCommitAnswer(),
      close,
    };
  };
}

driverSuite({ describe, it }, "typeorm", harness(onTypeOrm));
driverSuite({ describe, it }, "sequelize", harness(onSequelize));
driverSuite({ describe, it }, "mikro-orm", harness(onMikroOrm));

ormSuite("TypeORM", onTypeOrm);
ormSuite("Sequelize", onSequelize);
ormSuite("MikroORM", onMikroOrm);

describe("the examples", () => {
  it.each(["typeorm", "sequelize", "mikro-orm", "from-transaction"])("%s runs once and replays", async (name) => {
    const { url } = await createDatabase({ migrated: false });
    const args = ["--conditions=oncekey-source", "--import", "tsx", `examples/drivers/${name}.ts`];
    const { stdout } = await promisify(execFile)(process.execPath, args, {
      env: { ...process.env, DATABASE_URL: url },
    });
    const [first, second, ...more] = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(first).toMatchObject({ kind: "completed", invoices: 1, body: expect.stringContaining('"amount":5') });
    expect(second).toEqual({ ...first, kind: "replayed" });
    expect(more).toEqual([]);
  });
});
