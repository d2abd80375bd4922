import type { EventEmitter } from "node:events";
import { EntitySchema, MikroORM } from "@mikro-orm/postgresql";
import { sql as drizzleSql } from "drizzle-orm";
import { drizzle as drizzlePg } from "drizzle-orm/node-postgres";
import { drizzle as drizzlePostgresJs } from "drizzle-orm/postgres-js";
import createKnex, { type Knex } from "knex";
import { Kysely, sql as kyselySql, PostgresDialect, type Transaction } from "kysely";
import { createOncekey, ok, reject } from "oncekey";
import { type TransactionOf as DrizzleTx, fromDrizzle } from "oncekey/drivers/drizzle";
import { fromKnex } from "oncekey/drivers/knex";
import { fromKysely } from "oncekey/drivers/kysely";
import { fromMikroOrm } from "oncekey/drivers/mikro-orm";
import { fromPostgresJs } from "oncekey/drivers/postgres-js";
import { fromPrisma, type TransactionOf as PrismaTx } from "oncekey/drivers/prisma";
import { type Driver, fromTransaction, postgresStore } from "oncekey/postgres";
import postgres, { type TransactionSql } from "postgres";
import { describe, expect, it } from "vitest";
import { type PrismaClient as PrismaClient6, prismaClient as prismaClient6 } from "../peers/prisma6/client.ts";
import { type PrismaClient as PrismaClient7, prismaClient as prismaClient7 } from "../peers/prisma7/client.ts";
import { atEnd, createDatabase, query, testPool } from "../support/postgres.ts";

/** A library, and transactions that business code opens with it, past Oncekey. */
interface Library<Tx> {
  readonly driver: Driver<Tx>;
  execute(tx: Tx, sql: string): Promise<unknown>;
  open<R>(body: (tx: Tx) => Promise<R>): Promise<R>;
  /** What people pass by mistake: no transaction. */
  readonly none: unknown;
}

type Connect<Tx> = (url: string) => Library<Tx>;

const onKysely: Connect<Transaction<object>> = (url) => {
  const pool = testPool(url);
  const db = new Kysely<object>({ dialect: new PostgresDialect({ pool }) });
  return {
    driver: fromKysely(db, { pool }),
    execute: (tx, sql) => kyselySql.raw(sql).execute(tx),
    open: (body) => db.transaction().execute(body),
    none: db,
  };
};

const onDrizzle: Connect<DrizzleTx<ReturnType<typeof drizzlePg>>> = (url) => {
  const db = drizzlePg(testPool(url));
  return {
    driver: fromDrizzle(db),
    execute: (tx, sql) => tx.execute(drizzleSql.raw(sql)),
    open: (body) => db.transaction(body),
    none: db,
  };
};

function postgresJs(url: string) {
  const sql = postgres(url, { onnotice: () => {}, prepare: false });
  atEnd(() => sql.end({ timeout: 1 }));
  return sql;
}

const onDrizzlePostgresJs: Connect<DrizzleTx<ReturnType<typeof drizzlePostgresJs>>> = (url) => {
  const db = drizzlePostgresJs(postgresJs(url));
  return {
    driver: fromDrizzle(db),
    execute: (tx, sql) => tx.execute(drizzleSql.raw(sql)),
    open: (body) => db.transaction(body),
    none: db,
  };
};

const onPostgresJs: Connect<TransactionSql> = (url) => {
  const sql = postgresJs(url);
  return {
    driver: fromPostgresJs(sql),
    execute: async (tx, statement) => await tx.unsafe(statement),
    open: <R>(body: (tx: TransactionSql) => Promise<R>) => sql.begin(body) as Promise<R>,
    none: sql,
  };
};

const onKnex: Connect<Knex.Transaction> = (connection) => {
  const knex = createKnex({ client: "pg", connection, pool: { min: 0, max: 10 } });
  atEnd(() => knex.destroy());
  return {
    driver: fromKnex(knex),
    execute: async (tx, sql) => await tx.raw(sql),
    open: (body) => knex.transaction(body),
    none: knex,
  };
};

/** The database goes away while connections that are closing still listen. */
const unheard = (pool: EventEmitter) => {
  pool.on("error", () => {});
  pool.on("connect", (client: EventEmitter) => client.on("error", () => {}));
};

/** Each version of Prisma has a client of a type of its own. */
function closedAtEnd<
  Opened extends { client: { $disconnect(): Promise<void> }; pool: EventEmitter & { end(): Promise<void> } },
>(opened: Opened): Opened {
  const { client, pool } = opened;
  unheard(pool);
  atEnd(() => client.$disconnect().then(() => pool.end()));
  return opened;
}

const onPrisma6: Connect<PrismaTx<PrismaClient6>> = (url) => {
  const { client, pool } = closedAtEnd(prismaClient6(url, 10));
  return {
    driver: fromPrisma(client, { pool }),
    execute: (tx, sql) => tx.$executeRawUnsafe(sql),
    open: (body) => client.$transaction(body),
    none: client,
  };
};

const onPrisma7: Connect<PrismaTx<PrismaClient7>> = (url) => {
  const { client, pool } = closedAtEnd(prismaClient7(url, 10));
  return {
    driver: fromPrisma(client, { pool }),
    execute: (tx, sql) => tx.$executeRawUnsafe(sql),
    open: (body) => client.$transaction(body),
    none: client,
  };
};

async function world<Tx>(connect: Connect<Tx>) {
  const { url } = await createDatabase();
  await query(url, "CREATE TABLE booking (id text NOT NULL)");
  const connected = connect(url);
  const once = createOncekey({ store: postgresStore(connected.driver), waitMs: 0, onError: () => {} });
  const hooks = new Map<string, (tx: Tx) => unknown>();
  const bookings = once.transaction({
    name: "bookings.create",
    version: 1,
    async run({ tx, input }) {
      const { key } = (input as { body: { key: string } }).body;
      await connected.execute(tx, `INSERT INTO booking VALUES ('${key}')`);
      const answer = await hooks.get(key)?.(tx);
      return (answer as ReturnType<typeof ok>) ?? ok({ key });
    },
  });
  await once.start();
  const request = (key: string) => ({ scope: { tenant: "acme", client: null }, key, input: { body: { key } } });
  const count = async (from: string) => Number((await query(url, `SELECT count(*)::int AS n FROM ${from}`))[0]?.n);
  return {
    ...connected,
    hooks,
    run: (key: string) => once.run(bookings, request(key)),
    runIn: (tx: Tx, key: string) => once.run(bookings, { ...request(key), transaction: fromTransaction(tx) }),
    /** Committed rows of a key: business, entry. */
    kept: async (key: string) => [
      await count(`booking WHERE id = '${key}'`),
      await count(`oncekey.entry WHERE key = '${key}'`),
    ],
  };
}

const UNUSABLE = { code: "oncekey_transaction_unusable" };

describe.each([
  ["Kysely", onKysely as Connect<unknown>],
  ["Drizzle over pg", onDrizzle as Connect<unknown>],
  ["Drizzle over Postgres.js", onDrizzlePostgresJs as Connect<unknown>],
  ["Postgres.js", onPostgresJs as Connect<unknown>],
  ["Knex", onKnex as Connect<unknown>],
  ["Prisma 6", onPrisma6 as Connect<unknown>],
  ["Prisma 7", onPrisma7 as Connect<unknown>],
])("a run in a transaction that the caller opened by %s", (name, connect) => {
  it("commits and rolls back with it; until then the key is busy, and later it is replayed", async () => {
    const { open, run, runIn, execute, kept } = await world<unknown>(connect);
    const kinds = await open(async (tx) => {
      const first = await runIn(tx, "kept");
      await execute(tx, "INSERT INTO booking VALUES ('after')");
      return [first.kind, (await run("kept")).kind, (await open((other) => runIn(other, "kept"))).kind];
    });
    expect(kinds).toEqual(["completed", "busy", "busy"]);
    expect([await kept("kept"), await kept("after")]).toEqual([
      [1, 1],
      [1, 0],
    ]);
    expect([(await run("kept")).kind, (await open((tx) => runIn(tx, "kept"))).kind]).toEqual(["replayed", "replayed"]);
    const rolledBack = open(async (tx) => {
      expect((await runIn(tx, "lost")).kind).toBe("completed");
      throw new Error("of the caller");
    });
    await expect(rolledBack).rejects.toThrow("of the caller");
    expect(await kept("lost")).toEqual([0, 0]);
  });

  it("undoes what the operation did when it throws or refuses, and leaves the transaction usable", async () => {
    const { open, runIn, execute, hooks, kept } = await world<unknown>(connect);
    hooks.set("throws", () => Promise.reject(new Error("of the operation")));
    hooks.set("refuses", () => reject(422, { code: "limit_reached" }));
    await open(async (tx) => {
      await expect(runIn(tx, "throws")).rejects.toThrow("of the operation");
      await execute(tx, "INSERT INTO booking VALUES ('on')");
    });
    await open(async (tx) => expect((await runIn(tx, "refuses")).kind).toBe("completed"));
    expect([await kept("throws"), await kept("on"), await kept("refuses")]).toEqual([
      [0, 0],
      [1, 0],
      [0, 1],
    ]);
  });

  it("refuses what is no transaction, one that is over, one that has written, and one that ran another key", async () => {
    const { open, runIn, execute, none, kept } = await world<unknown>(connect);
    await expect(runIn(none, "none")).rejects.toMatchObject(UNUSABLE);
    const over = await open(async (tx) => [tx]);
    await expect(runIn(over[0], "over")).rejects.toMatchObject(UNUSABLE);
    await open(async (tx) => {
      await execute(tx, "INSERT INTO booking VALUES ('written')");
      await expect(runIn(tx, "late")).rejects.toMatchObject(UNUSABLE);
    });
    await open(async (tx) => {
      await runIn(tx, "one");
      await expect(runIn(tx, "another")).rejects.toMatchObject(UNUSABLE);
    });
    expect([await kept("written"), await kept("one"), await kept("another"), await kept("none")]).toEqual([
      [1, 0],
      [1, 1],
      [0, 0],
      [0, 0],
    ]);
  });

  it("can go on after an SQL error of the operation, except on Postgres.js", async () => {
    const { open, runIn, execute, hooks, kept } = await world<unknown>(connect);
    hooks.set("divides", (tx) => execute(tx, "SELECT 1 / 0"));
    const gone = open(async (tx) => {
      await expect(runIn(tx, "divides")).rejects.toThrow();
      await execute(tx, "INSERT INTO booking VALUES ('on')");
    });
    if (name.includes("Postgres.js")) await expect(gone).rejects.toThrow("division by zero");
    else await gone;
    expect([await kept("divides"), await kept("on")]).toEqual([
      [0, 0],
      [name.includes("Postgres.js") ? 0 : 1, 0],
    ]);
  });
});

it("refuses a transaction of a database without Oncekey's tables", async () => {
  const { runIn } = await world<unknown>(onKnex as Connect<unknown>);
  const { url } = await createDatabase({ migrated: false });
  const client = await testPool(url).connect();
  await client.query("BEGIN");
  const elsewhere = { client: { acquireConnection: async () => client, releaseConnection: async () => {} } };
  await expect(runIn(elsewhere, "elsewhere")).rejects.toMatchObject(UNUSABLE);
  client.release(true);
});

it("MikroORM: undoes what was left pending beside an SQL error, and leaves the transaction usable", async () => {
  const { url } = await createDatabase();
  await query(url, "CREATE TABLE booking (id text PRIMARY KEY)");
  const Booking = new EntitySchema<{ id: string }>({
    name: "booking",
    properties: { id: { type: "text", primary: true } },
  });
  const orm = await MikroORM.init({ clientUrl: url, entities: [Booking] });
  atEnd(() => orm.close());
  const once = createOncekey({ store: postgresStore(fromMikroOrm(orm)), onError: () => {} });
  const bookings = once.transaction({
    name: "bookings.create",
    version: 1,
    async run({ tx }) {
      tx.persist(tx.create(Booking, { id: "pending" }));
      await tx.execute("SELECT 1 / 0").catch(() => {});
      throw new Error("of the operation");
    },
  });
  await once.start();
  await orm.em.fork().transactional(async (tx) => {
    const run = { scope: { tenant: "acme", client: null }, key: "key", transaction: fromTransaction(tx) };
    await expect(once.run(bookings, run)).rejects.toThrow("of the operation");
    tx.persist(tx.create(Booking, { id: "of the caller" }));
  });
  expect(await query(url, "SELECT id FROM booking")).toEqual([{ id: "of the caller" }]);
});
