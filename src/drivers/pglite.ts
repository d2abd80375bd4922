import type { Driver, SqlRow } from "../stores/postgres/driver-port.ts";

/** What is used of a PGlite transaction. */
export interface PGliteTransaction {
  query(sql: string, parameters?: any[]): Promise<{ rows: unknown[] }>;
}

/** What is used of PGlite. */
export interface PGliteLike extends PGliteTransaction {
  transaction(body: (tx: any) => Promise<unknown>): Promise<unknown>;
}

/** The transaction type that PGlite hands out. */
export type TransactionOf<Db> = Db extends { transaction: (body: (tx: infer Tx) => any) => any } ? Tx : never;

/**
 * Drives PGlite (`@electric-sql/pglite`), PostgreSQL inside the process. It has one connection: transactions run one
 * after the other and leases cannot be renewed while one is open. A body that is given up finds its transaction closed.
 */
export function fromPGlite<Db extends PGliteLike>(db: Db): Driver<TransactionOf<Db>> {
  return {
    name: "pglite",
    connections: 1,
    abandons: true,
    async run(sql, parameters, tx) {
      const on = (tx as PGliteTransaction | undefined) ?? db;
      return (await on.query(sql, [...parameters])).rows as SqlRow[];
    },
    transaction: async (body) => {
      const box = (await db.transaction(async (tx) => ({ result: await body(tx) }))) as { result: any };
      return box.result;
    },
  };
}
