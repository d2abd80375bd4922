import type { Driver, SqlRow } from "../stores/postgres/driver-port.ts";
import { closeNoticed, guarded, type PostgresJsTransaction } from "./_postgres-js-transaction.ts";

/** What is used of Postgres.js' `sql`. */
export interface PostgresJs extends PostgresJsTransaction {
  begin(body: (tx: any) => Promise<unknown>): Promise<unknown>;
  readonly options: { readonly max: number; readonly transform: { readonly column: { from?: any; to?: any } } };
}

/** The transaction type that `begin` hands out. */
export type TransactionOf<Sql> = Sql extends { begin: { (body: (tx: infer Tx) => any): any; (...args: any[]): any } }
  ? Tx
  : never;

/**
 * Drives PostgreSQL through Postgres.js (`postgres` 3.x). Transactions are its own `TransactionSql`, which refuses every
 * use after its end. A body cannot be given up: Postgres.js has no way to destroy one connection. Throws `TypeError`
 * where column names are transformed without a way back.
 */
export function fromPostgresJs<Sql extends PostgresJs>(sql: Sql): Driver<TransactionOf<Sql>> {
  const { from, to } = sql.options.transform.column;
  if (from && !to)
    throw new TypeError("A column transform without `to` cannot be undone. Give Oncekey a client without.");
  const restored = (row: object) => Object.fromEntries(Object.entries(row).map(([name, value]) => [to(name), value]));
  return {
    name: "postgres-js",
    connections: sql.options.max,
    abandons: false,
    async run(statement, parameters, tx) {
      const running = ((tx as PostgresJsTransaction | undefined) ?? sql).unsafe(statement, [...parameters]);
      const rows = await Promise.resolve(running).catch(async (error: unknown) => {
        await closeNoticed();
        throw error;
      });
      return from ? rows.map(restored) : ([...rows] as SqlRow[]);
    },
    async transaction<R>(body: (tx: any) => Promise<R>): Promise<R> {
      let isOver = false;
      const begun = sql.begin(async (tx) => {
        try {
          // In a box: `begin` takes an array for a list of promises.
          return { result: await body(guarded(tx, () => isOver)) };
        } finally {
          // `begin` has rejected when the connection is lost. Its own ROLLBACK or COMMIT on the closed socket would be
          // an uncaught TypeError (porsager/postgres issue 1208), so it never learns that the body has ended.
          await closeNoticed();
          if (isOver) await new Promise(() => {});
        }
      });
      return await begun
        .then((box) => (box as { result: R }).result)
        .finally(() => {
          isOver = true;
        });
    },
  };
}
