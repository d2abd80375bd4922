import type { Driver, SqlRow } from "../stores/postgres/driver-port.ts";

/** What is used of a transaction of Postgres.js. */
export interface PostgresJsTransaction {
  unsafe(query: string, parameters?: any[]): PromiseLike<readonly any[]>;
}

/** What is used of Postgres.js' `sql`. */
export interface PostgresJs extends PostgresJsTransaction {
  begin(body: (tx: any) => Promise<unknown>): Promise<unknown>;
  readonly options: {
    readonly max: number;
    readonly transform: {
      readonly column: ColumnTransform;
      readonly value: { from?: unknown };
      readonly row: { from?: unknown };
    };
  };
}

interface ColumnTransform {
  readonly from?: ((name: string) => string) | undefined;
  readonly to?: ((name: string) => string) | undefined;
}

/** The transaction type that `begin` hands out. */
export type TransactionOf<Sql> = Sql extends { begin: { (body: (tx: infer Tx) => any): any; (...args: any[]): any } }
  ? Tx
  : never;

/**
 * Drives PostgreSQL through Postgres.js (`postgres` 3.x). Transactions are its own `TransactionSql`. A body cannot be
 * given up: its connection goes back to the pool while the body could still use it. Throws `TypeError` for transforms
 * that change values, or column names without a way back.
 */
export function fromPostgresJs<Sql extends PostgresJs>(sql: Sql): Driver<TransactionOf<Sql>> {
  const { max, transform } = sql.options;
  const { from, to } = transform.column;
  if (transform.value.from || transform.row.from || (from && !to)) {
    throw new TypeError(
      "Postgres.js transforms of values, rows, or of columns one way only cannot be undone. Give Oncekey a client without them.",
    );
  }
  const restored = (row: object) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [to?.(name) ?? name, value]));
  return {
    name: "postgres-js",
    connections: max,
    abandons: false,
    async run(statement, parameters, tx) {
      const rows = await ((tx as PostgresJsTransaction | undefined) ?? sql).unsafe(statement, [...parameters]);
      return from ? rows.map(restored) : ([...rows] as SqlRow[]);
    },
    // Wrapped, because `begin` takes an array that a body returns for a list of promises.
    transaction: async (body) => {
      const box = (await sql.begin(async (tx) => ({ result: await body(tx) }))) as { result: any };
      return box.result;
    },
  };
}
