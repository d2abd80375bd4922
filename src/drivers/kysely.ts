import { type Driver, TransactionAborted } from "../stores/postgres/driver-port.ts";
import { bodyFirst } from "./_body-first.ts";

/** What is used of Kysely's `db`. */
export interface KyselyLike {
  transaction(): { execute(body: (tx: any) => Promise<any>): Promise<any> };
  withoutPlugins(): { executeQuery(query: any): Promise<{ rows: any[] }> };
}

/** The transaction type that Kysely hands out. */
export type TransactionOf<Db> = Db extends { transaction(): { execute(body: (tx: infer T) => any): any } } ? T : never;

/** Options of {@link fromKysely}. */
export interface KyselyDriverOptions {
  /**
   * The `pg` pool that the dialect was given. Kysely hides it, and listens to no errors of its connections: without, the
   * size is unknown, and a connection that breaks may end the process. Default none.
   */
  readonly pool?: KyselyPool;
  /** Size of the pool, for a dialect over another client. Default: of `pool`, else unknown. */
  readonly connections?: number;
}

/** What is used of that pool. */
export interface KyselyPool {
  readonly options: { readonly max?: number | undefined };
  on(event: "error" | "acquire", listener: (subject: any) => void): unknown;
}

/**
 * Drives PostgreSQL through Kysely (0.28 and later), as a rule over `pg`. Transactions are Kysely's own `Transaction`.
 * A body cannot be given up: Kysely has no way to close one connection. Plugins do not see statements of ours.
 */
export function fromKysely<Db extends KyselyLike>(
  db: Db,
  options: KyselyDriverOptions = {},
): Driver<TransactionOf<Db>> {
  const { pool, connections = pool?.options.max ?? null } = options;
  pool?.on("error", () => {});
  // Each time, since connections may be older than this driver.
  pool?.on("acquire", (client) => client.removeListener("error", ignore).on("error", ignore));
  return {
    name: "kysely",
    connections,
    abandons: false,
    async run(sql, parameters, tx) {
      const query = { kind: "RawNode", sqlFragments: [sql], parameters: [] };
      const on = ((tx as KyselyLike | undefined) ?? db).withoutPlugins();
      return (await on.executeQuery({ sql, parameters, query, queryId: { queryId: "oncekey" } })).rows;
    },
    transaction: (body) => bodyFirst((inside) => db.transaction().execute(inside), body).catch(raiseAborted),
  };
}

const ignore = () => {};

function raiseAborted(error: any): never {
  throw error?.name === "AbortedTransactionError" ? new TransactionAborted(error.message) : error;
}
