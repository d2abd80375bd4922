import { EntitySchema, MikroORM } from "@mikro-orm/postgresql";
import { sql as drizzleSql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import createKnex, { type Knex } from "knex";
import { createOncekey, ok, type RunResult } from "oncekey";
import { type TransactionOf as DrizzleTx, fromDrizzle } from "oncekey/drivers/drizzle";
import { fromKnex } from "oncekey/drivers/knex";
import { fromMikroOrm } from "oncekey/drivers/mikro-orm";
import { fromPg } from "oncekey/drivers/pg";
import { fromSequelize } from "oncekey/drivers/sequelize";
import { fromTypeOrm } from "oncekey/drivers/typeorm";
import { type Driver, postgresStore } from "oncekey/postgres";
import type { PoolClient } from "pg";
import { Sequelize, type Transaction } from "sequelize";
import { DataSource, type EntityManager } from "typeorm";
import { describe, expect, it } from "vitest";
import { gate } from "../support/gate.ts";
import { atEnd, createDatabase, query, testPool } from "../support/postgres.ts";

/** What a library brings, in terms of its own transaction type. */
interface Library<Tx> {
  readonly driver: Driver<Tx>;
  execute(tx: Tx, sql: string): Promise<unknown>;
  nested(tx: Tx, body: (inner: Tx) => Promise<void>): Promise<unknown>;
  /** Ends the transaction by the library's own method. Absent where there is none. */
  commit?(tx: Tx): Promise<unknown>;
}

type Connect<Tx> = (url: string) => Promise<Library<Tx>>;

const MAX = 2;

const onPg: Connect<PoolClient> = async (url) => ({
  driver: fromPg(testPool(url, { max: MAX })),
  execute: (tx, sql) => tx.query(sql),
  async nested(tx, body) {
    await tx.query("SAVEPOINT nested");
    await body(tx);
  },
});

const onDrizzle: Connect<DrizzleTx<ReturnType<typeof drizzle>>> = async (url) => {
  const db = drizzle(testPool(url, { max: MAX }));
  return {
    driver: fromDrizzle(db),
    execute: (tx, sql) => tx.execute(drizzleSql.raw(sql)),
    nested: (tx, body) => tx.transaction(body),
  };
};

const onKnex: Connect<Knex.Transaction> = async (connection) => {
  const knex = createKnex({ client: "pg", connection, pool: { min: 0, max: MAX } });
  atEnd(() => knex.destroy());
  return {
    driver: fromKnex(knex),
    execute: async (tx, sql) => await tx.raw(sql),
    nested: (tx, body) => tx.transaction(body),
    commit: async (tx) => await tx.commit(),
  };
};

const onTypeOrm: Connect<EntityManager> = async (url) => {
  const dataSource = await new DataSource({ type: "postgres", url, poolSize: MAX }).initialize();
  atEnd(() => dataSource.destroy());
  return {
    driver: fromTypeOrm(dataSource),
    execute: (tx, sql) => tx.query(sql),
    nested: (tx, body) => tx.transaction(body),
    commit: async (tx) => tx.queryRunner?.commitTransaction(),
  };
};

const onSequelize: Connect<Transaction> = async (url) => {
  const sequelize = new Sequelize(url, { logging: false, pool: { max: MAX } });
  atEnd(() => sequelize.close());
  return {
    driver: fromSequelize(sequelize),
    execute: (transaction, sql) => sequelize.query(sql, { transaction }),
    nested: (transaction, body) => sequelize.transaction({ transaction }, body),
    commit: (tx) => tx.commit(),
  };
};

const onMikroOrm: Connect<MikroORM["em"]> = async (clientUrl) => {
  const entities = [new EntitySchema({ name: "nothing", properties: { id: { type: "text", primary: true } } })];
  const orm = await MikroORM.init({ clientUrl, entities, pool: { min: 0, max: MAX } });
  atEnd(() => orm.close());
  return {
    driver: fromMikroOrm(orm),
    execute: (tx, sql) => tx.execute(sql),
    nested: (tx, body) => tx.transactional(body),
    commit: (tx) => tx.commit(),
  };
};

const LIBRARIES: readonly (readonly [string, Connect<unknown>])[] = [
  ["pg", onPg as Connect<unknown>],
  ["Drizzle", onDrizzle as Connect<unknown>],
  ["Knex", onKnex as Connect<unknown>],
  ["TypeORM", onTypeOrm as Connect<unknown>],
  ["Sequelize", onSequelize as Connect<unknown>],
  ["MikroORM", onMikroOrm as Connect<unknown>],
];

type Hook = (tx: unknown) => Promise<unknown>;

async function world(connect: Connect<unknown>) {
  const { url } = await createDatabase();
  await query(url, "CREATE TABLE booking (id text NOT NULL)");
  const connected: Library<unknown> = await connect(url);
  const once = createOncekey({ store: postgresStore(connected.driver), waitMs: 0, onError: () => {} });
  const hooks = new Map<string, Hook>();
  const bookings = once.transaction({
    name: "bookings.create",
    version: 1,
    async run({ tx, input }) {
      const { key } = (input as { body: { key: string } }).body;
      await connected.execute(tx, `INSERT INTO booking VALUES ('${key}')`);
      await hooks.get(key)?.(tx);
      return ok({ key });
    },
  });
  await once.start();
  const run = (key: string): Promise<RunResult> =>
    once.run(bookings, { scope: { tenant: "acme", client: null }, key, input: { body: { key } } });
  const column = async (sql: string) => (await query(url, sql)).map(({ value }) => value);
  return {
    ...connected,
    hooks,
    run,
    rows: () => column("SELECT id AS value FROM booking ORDER BY id"),
    entries: () => column("SELECT key AS value FROM oncekey.entry ORDER BY key"),
    /** Transactions that somebody left open. */
    open: () =>
      column(
        "SELECT query AS value FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'",
      ),
  };
}

/** Goes on writing, statement after statement, as what a failed `Promise.all` left running does. */
async function writes({ execute }: Library<unknown>, tx: unknown, started: () => void): Promise<void> {
  for (let index = 0; index < 20; index++) {
    await execute(tx, "INSERT INTO booking VALUES ('stray')");
    started();
  }
}

describe.each(LIBRARIES)("what business code on %s leaves running", (name, connect) => {
  it.each(["of its own", "nested"])("writes nothing when the operation fails, in a transaction %s", async (kind) => {
    const here = await world(connect);
    let left: Promise<unknown> = Promise.resolve();
    here.hooks.set("fails", async (tx) => {
      const started = gate();
      const stray = (on: unknown) => writes(here, on, started.open);
      left = (kind === "nested" ? here.nested(tx, stray) : stray(tx)).catch(() => {});
      await started.promise;
      throw new Error("of the business");
    });
    await expect(here.run("fails")).rejects.toThrow("of the business");
    await left;
    expect(await here.open()).toEqual([]);
    // Whoever gets the connection next commits nothing of it.
    for (const key of ["a", "b", "c"]) expect((await here.run(key)).kind).toBe("completed");
    expect(await here.rows()).toEqual(["a", "b", "c"]);
    expect(await here.entries()).toEqual(["a", "b", "c"]);
  });

  it("is with the entry or not at all when the operation ends before a nested transaction", async () => {
    const here = await world(connect);
    let left: Promise<unknown> = Promise.resolve();
    here.hooks.set("returns", async (tx) => {
      const started = gate();
      left = here.nested(tx, (inner) => writes(here, inner, started.open)).catch(() => {});
      await started.promise;
    });
    const result = await here.run("returns").catch((error: Error) => error);
    const committed = await here.rows();
    await left;
    expect(await here.open()).toEqual([]);
    if (["TypeORM", "Sequelize"].includes(name)) {
      expect(String(result)).toMatch(/ended while a nested transaction was open/);
      expect([await here.rows(), await here.entries()]).toEqual([[], []]);
    } else {
      expect(result).toMatchObject({ kind: "completed" });
      expect(await here.rows()).toEqual(committed);
      expect(await here.entries()).toEqual(["returns"]);
    }
    expect((await here.run("next")).kind).toBe("completed");
  });

  it("is an error where it ended the transaction by the library's own method", async () => {
    const here = await world(connect);
    const { commit } = here;
    if (commit === undefined) return expect(["pg", "Drizzle"]).toContain(name);
    here.hooks.set("ends", (tx) => commit(tx));
    await expect(here.run("ends")).rejects.toMatchObject({ code: "oncekey_transaction_lost" });
    expect(await here.entries()).toEqual([]);
    expect(await here.open()).toEqual([]);
  });
});
