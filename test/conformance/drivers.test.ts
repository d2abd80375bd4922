import { PGlite, type Transaction } from "@electric-sql/pglite";
import { fromPg, type PgDriverOptions } from "oncekey/drivers/pg";
import { fromPGlite } from "oncekey/drivers/pglite";
import { fromPostgresJs } from "oncekey/drivers/postgres-js";
import type { Driver } from "oncekey/postgres";
import { type DriverHarness, driverSuite } from "oncekey/testing";
import pg, { type PoolClient } from "pg";
import postgres, { type TransactionSql } from "postgres";
import { describe, it } from "vitest";
import { type CuttingProxy, cuttingProxy } from "../support/cutting-proxy.ts";
import { atEnd, createDatabase, query, sharedServer } from "../support/postgres.ts";

const CONNECTIONS = 3;

interface Behind {
  readonly proxy: CuttingProxy;
  /** Of the database, directly. */
  readonly url: string;
  /** Of the database, through the proxy. */
  readonly proxied: string;
}

let behind: Promise<Behind> | undefined;

async function proxiedDatabase(): Promise<Behind> {
  const { url } = await createDatabase({ migrated: false });
  const { port } = await sharedServer();
  const proxy = await cuttingProxy(port);
  atEnd(() => proxy.close());
  return { proxy, url, proxied: url.replace(`:${port}/`, `:${proxy.port}/`) };
}

/** Each case gets a pool of its own, through the proxy, on one database. */
async function onServer<Tx>(
  connect: (url: string) => { driver: Driver<Tx>; end: () => Promise<void> },
  execute: (tx: Tx, sql: string) => Promise<unknown>,
): Promise<DriverHarness> {
  behind ??= proxiedDatabase();
  const { proxy, url, proxied } = await behind;
  const { driver, end } = connect(proxied);
  return {
    driver: driver as Driver<unknown>,
    execute: async (tx, sql) => void (await execute(tx as Tx, sql)),
    admin: (sql) => query(url, sql),
    loseNextCommitAnswer: () => proxy.loseNextCommitAnswer(),
    close: end,
  };
}

const pgOn = (options: PgDriverOptions, config: pg.PoolConfig) => () =>
  onServer<PoolClient>(
    (url) => {
      const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS, ...config });
      return { driver: fromPg(pool, options), end: () => pool.end() };
    },
    (tx, sql) => tx.query(sql),
  );

const postgresJsOn =
  (options: postgres.Options<Record<string, never>>, named = false) =>
  () =>
    onServer<TransactionSql>(
      (url) => {
        const sql = postgres(url, { max: CONNECTIONS, onnotice: () => {}, ...options });
        return { driver: fromPostgresJs(sql, { named }), end: () => sql.end({ timeout: 1 }) };
      },
      (tx, sql) => tx.unsafe(sql),
    );

let pglite: Promise<PGlite> | undefined;

async function onPGlite(): Promise<DriverHarness> {
  pglite ??= PGlite.create().then((db) => {
    atEnd(() => db.close());
    return db;
  });
  const db = await pglite;
  return {
    driver: fromPGlite(db) as Driver<unknown>,
    execute: async (tx, sql) => void (await (tx as Transaction).query(sql)),
    admin: async (sql) => (await db.query<Record<string, unknown>>(sql)).rows,
    loseNextCommitAnswer: () => {},
    close: async () => {},
  };
}

const GIVEN_UP = "rolls back a body that is given up, and never hands its connection to anybody else";
const ON_ITS_WAY = "keeps the pool usable after a connection was lost while a statement was on its way";
const POSTGRES_JS = {
  [GIVEN_UP]: "Postgres.js returns the connection to its pool while the body could still use it",
  [ON_ITS_WAY]:
    "Postgres.js 3.4.9 keeps what it had not yet written when a connection closed, and its next use waits for connect_timeout",
};
const ONE_CONNECTION = "PGlite has one connection";
const NO_NETWORK = "PGlite runs inside the process: there is no connection to lose";

driverSuite({ describe, it }, "pg", pgOn({}, {}));
driverSuite({ describe, it }, "pg with named statements", pgOn({ named: true }, {}));
driverSuite({ describe, it }, "postgres-js", postgresJsOn({}), { limits: POSTGRES_JS });
driverSuite({ describe, it }, "postgres-js with named statements", postgresJsOn({}, true), { limits: POSTGRES_JS });
driverSuite({ describe, it }, "postgres-js with camel case columns", postgresJsOn({ transform: postgres.camel }), {
  limits: POSTGRES_JS,
});
driverSuite({ describe, it }, "postgres-js without prepared statements", postgresJsOn({ prepare: false }), {
  limits: POSTGRES_JS,
});
driverSuite({ describe, it }, "pglite", onPGlite, {
  limits: {
    "shows nothing of a transaction to others before its commit": ONE_CONNECTION,
    "runs transactions at the same time": ONE_CONNECTION,
    "shows 57014 for a statement that ran into statement_timeout":
      "PGlite has no timers that could interrupt a statement",
    "shows 55P03 for a lock that was not gained in time": ONE_CONNECTION,
    "shows 40001 for a row that changed under REPEATABLE READ": ONE_CONNECTION,
    "shows 40P01 to one of two transactions that wait for each other": ONE_CONNECTION,
    "rejects where COMMIT was answered with ROLLBACK, although no statement came after the swallowed error":
      "PGlite hides the answer to COMMIT; our last statement, which always comes, is the proof",
    "rejects when the connection is lost inside the body, with nothing committed": NO_NETWORK,
    "rejects when the connection is lost between the body and COMMIT, with nothing committed": NO_NETWORK,
    [ON_ITS_WAY]: NO_NETWORK,
    "rejects without a verdict of the server when the answer to COMMIT is lost, and keeps the pool usable": NO_NETWORK,
    "does not end the process when an idle connection breaks": NO_NETWORK,
  },
});
