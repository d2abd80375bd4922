import { sql as drizzleSql, TransactionRollbackError } from "drizzle-orm";
import { drizzle as drizzlePg } from "drizzle-orm/node-postgres";
import { integer, pgTable, text } from "drizzle-orm/pg-core";
import { drizzle as drizzlePostgresJs } from "drizzle-orm/postgres-js";
import createKnex, { type Knex } from "knex";
import { CamelCasePlugin, type Generated, Kysely, sql as kyselySql, PostgresDialect, type Transaction } from "kysely";
import { type TransactionOf as DrizzleTx, fromDrizzle } from "oncekey/drivers/drizzle";
import { fromKnex } from "oncekey/drivers/knex";
import { fromKysely } from "oncekey/drivers/kysely";
import { fromPg } from "oncekey/drivers/pg";
import { fromPostgresJs } from "oncekey/drivers/postgres-js";
import { fromPrisma, type TransactionOf as PrismaTx } from "oncekey/drivers/prisma";
import type { Driver } from "oncekey/postgres";
import { type DriverHarness, driverSuite, type SuiteOptions } from "oncekey/testing";
import pg, { type PoolClient } from "pg";
import postgres, { type TransactionSql } from "postgres";
import { describe, expect, it } from "vitest";
import { type PrismaClient as PrismaClient6, prismaClient as prismaClient6 } from "../peers/prisma6/client.ts";
import { type PrismaClient as PrismaClient7, prismaClient as prismaClient7 } from "../peers/prisma7/client.ts";
import { cuttingProxy } from "../support/cutting-proxy.ts";
import { raised } from "../support/orm-commits.ts";
import { type Orm, ormSuite } from "../support/orm-suite.ts";
import { ormWorld } from "../support/orm-world.ts";
import { atEnd, createDatabase, query, sharedServer } from "../support/postgres.ts";

type Connect<Tx> = (url: string, connections: number) => Promise<Orm<Tx>>;

const onPg: Connect<PoolClient> = async (connectionString, max) => {
  const pool = new pg.Pool({ connectionString, max });
  return {
    driver: fromPg(pool),
    insert: (tx, table, id) => tx.query(`INSERT INTO ${table} (id) VALUES ($1)`, [id]),
    execute: (tx, sql) => tx.query(sql),
    async nested(tx, body) {
      await tx.query("SAVEPOINT nested");
      await body(tx).catch(async (error) => {
        await tx.query("ROLLBACK TO SAVEPOINT nested");
        throw error;
      });
    },
    close: () => pool.end(),
  };
};

const onPostgresJs: Connect<TransactionSql> = async (url, max) => {
  const sql = postgres(url, { max, prepare: false, onnotice: () => {}, connect_timeout: 2 });
  return {
    driver: fromPostgresJs(sql),
    insert: async (tx, table, id) => await tx`INSERT INTO ${tx(table)} ${tx({ id })}`,
    execute: async (tx, statement) => await tx.unsafe(statement),
    nested: (tx, body) => tx.savepoint(body as (inner: TransactionSql) => Promise<void>),
    close: () => sql.end({ timeout: 1 }),
  };
};

interface Tables {
  booking: { number: Generated<number>; id: string };
  seat: { id: string };
}

const onKysely: Connect<Transaction<Tables>> = async (connectionString, max) => {
  const pool = new pg.Pool({ connectionString, max });
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }), plugins: [new CamelCasePlugin()] });
  return {
    driver: fromKysely(db, { pool }),
    insert: (tx, table, id) => tx.insertInto(table).values({ id }).execute(),
    execute: (tx, sql) => kyselySql.raw(sql).execute(tx),
    nested: async (tx, body) => tx.transaction().execute(body),
    refusal: /calling the transaction method for a Transaction is not supported/,
    close: () => db.destroy(),
  };
};

const tables = {
  booking: pgTable("booking", { number: integer().primaryKey().generatedAlwaysAsIdentity(), id: text().notNull() }),
  seat: pgTable("seat", { id: text().primaryKey() }),
};

const drizzleOnPg = (pool: pg.Pool) => drizzlePg(pool, { schema: tables });

const onDrizzle: Connect<DrizzleTx<ReturnType<typeof drizzleOnPg>>> = async (connectionString, max) => {
  const pool = new pg.Pool({ connectionString, max });
  return {
    driver: fromDrizzle(drizzleOnPg(pool)),
    insert: (tx, table, id) => tx.insert(tables[table]).values({ id }),
    execute: (tx, sql) => tx.execute(drizzleSql.raw(sql)),
    nested: (tx, body) => tx.transaction(body),
    close: () => pool.end(),
  };
};

const drizzleOnPostgresJs = (client: postgres.Sql) => drizzlePostgresJs(client, { schema: tables });

const onDrizzlePostgresJs: Connect<DrizzleTx<ReturnType<typeof drizzleOnPostgresJs>>> = async (url, max) => {
  const client = postgres(url, { max, prepare: false, onnotice: () => {}, connect_timeout: 2 });
  return {
    driver: fromDrizzle(drizzleOnPostgresJs(client)),
    insert: (tx, table, id) => tx.insert(tables[table]).values({ id }),
    execute: (tx, sql) => tx.execute(drizzleSql.raw(sql)),
    nested: (tx, body) => tx.transaction(body),
    close: () => client.end({ timeout: 1 }),
  };
};

const knexWith = (config: Knex.Config): Orm<Knex.Transaction> => {
  const knex = createKnex({ client: "pg", ...config });
  return {
    driver: fromKnex(knex),
    insert: (tx, table, id) => Promise.resolve(tx(table).insert({ id })),
    execute: (tx, sql) => Promise.resolve(tx.raw(sql)),
    nested: (tx, body) => tx.transaction(body),
    close: () => knex.destroy(),
  };
};

const onKnex: Connect<Knex.Transaction> = async (connection, max) => knexWith({ connection, pool: { min: 0, max } });

const onKnexOverPool: Connect<Knex.Transaction> = async (connectionString, max) => {
  const pool = new pg.Pool({ connectionString, max });
  const orm = knexWith({ connectionPool: pool });
  return { ...orm, close: () => orm.close().then(() => pool.end()) };
};

const onPrisma6: Connect<PrismaTx<PrismaClient6>> = async (connectionString, max) => {
  const { client, pool } = prismaClient6(connectionString, max);
  return {
    driver: fromPrisma(client, { pool }),
    insert: (tx, table, id) =>
      table === "seat" ? tx.seat.create({ data: { id } }) : tx.booking.create({ data: { id } }),
    execute: (tx, sql) => tx.$executeRawUnsafe(sql),
    // Its type has no $transaction; people try all the same.
    nested: async (tx, body) => (tx as unknown as PrismaClient6).$transaction(body),
    refusal: /\$transaction is not a function/,
    close: () => client.$disconnect().then(() => pool.end()),
  };
};

const onPrisma7: Connect<PrismaTx<PrismaClient7>> = async (connectionString, max) => {
  const { client, pool } = prismaClient7(connectionString, max);
  return {
    driver: fromPrisma(client, { pool }),
    insert: (tx, table, id) =>
      table === "seat" ? tx.seat.create({ data: { id } }) : tx.booking.create({ data: { id } }),
    execute: (tx, sql) => tx.$executeRawUnsafe(sql),
    nested: (tx, body) => tx.$transaction(body),
    close: () => client.$disconnect().then(() => pool.end()),
  };
};

let behind: ReturnType<typeof proxiedDatabase> | undefined;

async function proxiedDatabase() {
  const { url } = await createDatabase({ migrated: false });
  const { port } = await sharedServer();
  const proxy = await cuttingProxy(port);
  atEnd(() => proxy.close());
  return { proxy, url, proxied: url.replace(`:${port}/`, `:${proxy.port}/`) };
}

/** The driver suite: each case gets a pool of its own, through the proxy, on one database. */
function conforms<Tx>(name: string, connect: Connect<Tx>, options: SuiteOptions = {}): void {
  const makeHarness = async (): Promise<DriverHarness> => {
    behind ??= proxiedDatabase();
    const { proxy, url, proxied } = await behind;
    const { driver, execute, close } = await connect(proxied, 3);
    return {
      driver: driver as Driver<unknown>,
      execute: async (tx, sql) => void (await execute(tx as Tx, sql)),
      admin: (sql) => query(url, sql),
      loseNextCommitAnswer: () => proxy.loseNextCommitAnswer(),
      close,
    };
  };
  driverSuite({ describe, it }, name, makeHarness, options);
}

conforms("kysely", onKysely);
conforms("drizzle over pg", onDrizzle);
conforms("drizzle over postgres.js", onDrizzlePostgresJs, {
  limits: {
    "keeps the pool usable after a connection was lost while a statement was on its way":
      "Postgres.js 3.4.9 keeps what it had not yet written when a connection closed, and its next use waits for connect_timeout",
  },
});
conforms("knex", onKnex);
conforms("knex over a pg pool", onKnexOverPool);
const PRISMA = {
  "rejects where COMMIT was answered with ROLLBACK, although no statement came after the swallowed error":
    "Prisma hides the answer to COMMIT; our last statement, which always comes, is the proof",
};
conforms("prisma 6", onPrisma6, { limits: PRISMA });
conforms("prisma 7", onPrisma7, { limits: PRISMA });

ormSuite("pg", onPg);
ormSuite("postgres.js", onPostgresJs);
ormSuite("kysely", onKysely);
ormSuite("drizzle over pg", onDrizzle);
ormSuite("drizzle over postgres.js", onDrizzlePostgresJs);
ormSuite("knex", onKnex);
ormSuite("prisma 6", onPrisma6);
ormSuite("prisma 7", onPrisma7);

describe("business code that ends the transaction by the library's own means", () => {
  it.each(["commit", "rollback"] as const)("Knex: %s() is a clear error, and stores nothing", async (ending) => {
    const { orm, run, states } = await ormWorld(onKnex as Connect<unknown>);
    const failing = run(`knex-${ending}`, async (tx) => void (await (tx as Knex.Transaction)[ending]()));
    expect(await raised(failing)).toMatchObject({ code: "oncekey_transaction_lost" });
    expect(await states(`knex-${ending}`)).toEqual([]);
    await orm.close();
  });

  it("Drizzle: rollback() rolls back, and its error reaches the caller", async () => {
    const { orm, run, rows, states } = await ormWorld(onDrizzle as Connect<unknown>);
    const failing = run("rolled-back", async (tx) => (tx as DrizzleTx<ReturnType<typeof drizzleOnPg>>).rollback());
    expect(await raised(failing)).toBeInstanceOf(TransactionRollbackError);
    expect([await rows("booking", "rolled-back"), await states("rolled-back")]).toEqual([0, []]);
    await orm.close();
  });
});
