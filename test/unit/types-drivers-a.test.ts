import { drizzle as drizzlePg, type NodePgDatabase } from "drizzle-orm/node-postgres";
import { pgTable, text } from "drizzle-orm/pg-core";
import { drizzle as drizzlePostgresJs, type PostgresJsDatabase } from "drizzle-orm/postgres-js";
import createKnex, { type Knex } from "knex";
import type { Kysely, Transaction } from "kysely";
import { createOncekey, ok } from "oncekey";
import { type TransactionOf as DrizzleTx, fromDrizzle } from "oncekey/drivers/drizzle";
import { fromKnex, type TransactionOf as KnexTx } from "oncekey/drivers/knex";
import { fromKysely, type TransactionOf as KyselyTx } from "oncekey/drivers/kysely";
import { fromPrisma, type TransactionOf as PrismaTx } from "oncekey/drivers/prisma";
import { type Driver, postgresStore } from "oncekey/postgres";
import pg, { type Pool } from "pg";
import type { Sql } from "postgres";
import { describe, expect, expectTypeOf, it } from "vitest";
import type * as prisma6 from "../peers/prisma6/client.ts";
import type * as prisma7 from "../peers/prisma7/client.ts";

interface Tables {
  seat: { id: string };
}
const schema = { seat: pgTable("seat", { id: text().primaryKey() }) };
type FirstOf<F extends (first: never) => unknown> = Parameters<F>[0];

// Checked by the compiler: the real libraries fit the structural types, and hand out their own transaction type.
describe("the transaction of an operation is the library's own", () => {
  it("Kysely: a Transaction of the caller's tables", () => {
    expectTypeOf<KyselyTx<Kysely<Tables>>>().toEqualTypeOf<Transaction<Tables>>();
    expectTypeOf(fromKysely<Kysely<Tables>>).returns.toEqualTypeOf<Driver<Transaction<Tables>>>();
    expectTypeOf<{ pool: Pool }>().toExtend<NonNullable<Parameters<typeof fromKysely>[1]>>();
  });

  it("Drizzle over node-postgres: a transaction that knows the schema", () => {
    type Db = NodePgDatabase<typeof schema> & { $client: Pool };
    type Own = FirstOf<FirstOf<Db["transaction"]>>;
    expectTypeOf<DrizzleTx<Db>>().toEqualTypeOf<Own>();
    expectTypeOf<DrizzleTx<NodePgDatabase<typeof schema>>>().toEqualTypeOf<Own>();
    expectTypeOf<Own["query"]>().toHaveProperty("seat");
    expectTypeOf(fromDrizzle<Db>).returns.toEqualTypeOf<Driver<Own>>();
  });

  it("Drizzle over Postgres.js: the same", () => {
    type Db = PostgresJsDatabase<typeof schema> & { $client: Sql };
    type Own = FirstOf<FirstOf<Db["transaction"]>>;
    expectTypeOf<DrizzleTx<Db>>().toEqualTypeOf<Own>();
    expectTypeOf<Own["query"]>().toHaveProperty("seat");
  });

  it("Knex: a Knex.Transaction", () => {
    expectTypeOf<KnexTx<Knex>>().toEqualTypeOf<Knex.Transaction>();
    expectTypeOf(fromKnex<Knex>).returns.toEqualTypeOf<Driver<Knex.Transaction>>();
  });

  it("Prisma 6 and 7: the TransactionClient of the generated client", () => {
    expectTypeOf<PrismaTx<prisma6.PrismaClient>>().toEqualTypeOf<prisma6.Prisma.TransactionClient>();
    expectTypeOf<PrismaTx<prisma7.PrismaClient>>().toEqualTypeOf<prisma7.Prisma.TransactionClient>();
    expectTypeOf(fromPrisma<prisma7.PrismaClient>).returns.toEqualTypeOf<Driver<prisma7.Prisma.TransactionClient>>();
    expectTypeOf<PrismaTx<prisma7.PrismaClient>>().toHaveProperty("seat");
  });

  it("reaches the operation's code by inference alone", () => {
    const define = (db: Kysely<Tables>) =>
      createOncekey({ store: postgresStore(fromKysely(db)) }).transaction({
        name: "seats.take",
        version: 1,
        async run({ tx }) {
          expectTypeOf(tx).toEqualTypeOf<Transaction<Tables>>();
          return ok(await tx.selectFrom("seat").select("id").executeTakeFirstOrThrow());
        },
      });
    expectTypeOf(define).toBeFunction();
  });
});

describe("what a driver cannot work with is refused", () => {
  it("by the compiler", () => {
    const refuse = () => {
      // @ts-expect-error a pool is no Kysely
      fromKysely(new pg.Pool());
      // @ts-expect-error a pool is no Drizzle
      fromDrizzle(new pg.Pool());
      // @ts-expect-error a pool is no Knex
      fromKnex(new pg.Pool());
      // @ts-expect-error a pool is no Prisma Client
      fromPrisma(new pg.Pool());
    };
    expectTypeOf(refuse).returns.toBeVoid();
  });

  it("Drizzle over one client, over nothing, or over Postgres.js that renames columns", () => {
    expect(() => fromDrizzle(drizzlePg(new pg.Client()))).toThrow(TypeError);
    expect(() => fromDrizzle(drizzlePg.mock())).toThrow(TypeError);
    expect(() => fromDrizzle(drizzlePostgresJs.mock())).toThrow(TypeError);
  });

  it("Knex without the client pg", () => {
    expect(() => fromKnex(createKnex({ client: createKnex.Client }))).toThrow(TypeError);
  });
});
