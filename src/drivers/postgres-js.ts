import type { Driver, SqlRow } from "../stores/postgres/driver-port.ts";
import { begun, unsafeRows } from "./_postgres-js-begin.ts";
import type { PostgresJsTransaction } from "./_postgres-js-transaction.ts";

/** What is used of Postgres.js' `sql`. */
export interface PostgresJs extends PostgresJsTransaction {
  begin(body: (tx: any) => Promise<unknown>): Promise<unknown>;
  readonly options: { readonly max: number; readonly transform: { readonly column: { from?: any; to?: any } } };
}

/** The transaction type that `begin` hands out. */
export type TransactionOf<Sql> = Sql extends { begin: { (body: (tx: infer Tx) => any): any; (...args: any[]): any } }
  ? Tx
  : never;

/** Options of {@link fromPostgresJs}. */
export interface PostgresJsDriverOptions {
  /**
   * Keeps Oncekey's own statements prepared on each connection, which saves each its round trip for the types of its
   * parameters. Never where a pooler may sit between, unless it keeps prepared statements itself. Default false.
   */
  readonly named?: boolean;
}

/**
 * Drives PostgreSQL through Postgres.js (`postgres` 3.x). Transactions are its own `TransactionSql`, which refuses every
 * use after its end. A body cannot be given up: Postgres.js has no way to destroy one connection. Throws `TypeError`
 * where column names are transformed without a way back.
 */
export function fromPostgresJs<Sql extends PostgresJs>(
  sql: Sql,
  { named: prepare = false }: PostgresJsDriverOptions = {},
): Driver<TransactionOf<Sql>> {
  const { from, to } = sql.options.transform.column;
  if (from && !to)
    throw new TypeError("A column transform without `to` cannot be undone. Give Oncekey a client without.");
  const restored = (row: object) => Object.fromEntries(Object.entries(row).map(([name, value]) => [to(name), value]));
  return {
    name: "postgres-js",
    connections: sql.options.max,
    abandons: false,
    async run(statement, parameters, tx) {
      const rows: SqlRow[] = await unsafeRows(tx ?? sql, statement, parameters, { prepare });
      return from ? rows.map(restored) : rows;
    },
    transaction: (body) => begun(sql, body),
  };
}
