import type { PGlite, Transaction } from "@electric-sql/pglite";
import { type ClientOf, fromPg } from "oncekey/drivers/pg";
import { fromPGlite, type TransactionOf as PGliteTransactionOf } from "oncekey/drivers/pglite";
import { fromPostgresJs, type TransactionOf as PostgresJsTransactionOf } from "oncekey/drivers/postgres-js";
import { type Driver, postgresStore } from "oncekey/postgres";
import type { Pool, PoolClient } from "pg";
import type { Sql, TransactionSql } from "postgres";
import { expectTypeOf, it } from "vitest";

// Checked by the compiler: the real libraries fit the structural types, and hand out their own transaction type.
it("a pg pool fits, and its transactions are PoolClients", () => {
  expectTypeOf<ClientOf<Pool>>().toEqualTypeOf<PoolClient>();
  expectTypeOf(fromPg<Pool>).returns.toEqualTypeOf<Driver<PoolClient>>();
  expectTypeOf(fromPg<Pool>)
    .parameter(0)
    .toEqualTypeOf<Pool>();
});

it("a Postgres.js client fits, and its transactions are TransactionSql", () => {
  expectTypeOf<PostgresJsTransactionOf<Sql>>().toEqualTypeOf<TransactionSql>();
  expectTypeOf(fromPostgresJs<Sql>).returns.toEqualTypeOf<Driver<TransactionSql>>();
  expectTypeOf<PostgresJsTransactionOf<Sql<{ big: bigint }>>>().toEqualTypeOf<TransactionSql<{ big: bigint }>>();
});

it("a PGlite database fits, and its transactions are Transactions", () => {
  expectTypeOf<PGliteTransactionOf<PGlite>>().toEqualTypeOf<Transaction>();
  expectTypeOf(fromPGlite<PGlite>).returns.toEqualTypeOf<Driver<Transaction>>();
});

it("the store keeps the driver's transaction type for the handler", () => {
  const store = postgresStore<PoolClient>;
  type Body = Parameters<ReturnType<typeof store>["transaction"]>[0];
  expectTypeOf<Parameters<Body>[0]["tx"]>().toEqualTypeOf<PoolClient>();
});

it("a client without what a driver needs is refused", () => {
  const refuse = () => {
    // @ts-expect-error no pool
    fromPg({ query: async () => ({ rows: [] }) });
    // @ts-expect-error no begin
    fromPostgresJs({ unsafe: async () => [], options: { max: 1, transform: { column: {} } } });
    // @ts-expect-error no transaction
    fromPGlite({ query: async () => ({ rows: [] }) });
  };
  expectTypeOf(refuse).returns.toBeVoid();
});
