import type { Driver } from "../stores/postgres/driver-port.ts";
import { noTransaction } from "./_pg-client.ts";
import { pgTransaction } from "./_pg-transaction.ts";

/** What is used of Knex. */
export interface KnexLike {
  transaction(body: (tx: any) => Promise<any>, config?: any): PromiseLike<any>;
  readonly client: any;
}

/** The transaction type that Knex hands out. */
export type TransactionOf<Db> = Db extends {
  transaction: { (...args: any[]): any; (body: (tx: infer Tx) => any, config?: any): any };
}
  ? Tx
  : never;

/**
 * Drives PostgreSQL through Knex (3.x; `TypeError` where its client is not `pg`). Transactions are Knex' own. Statements
 * of ours go past it: Knex takes `?` for a parameter, and writes what the parameters were into its errors.
 */
export function fromKnex<Db extends KnexLike>(knex: Db): Driver<TransactionOf<Db>> {
  const { client } = knex;
  if (client?.driverName !== "pg") throw new TypeError('fromKnex takes Knex with the client "pg".');
  // In a `pg` pool of the caller's nobody listens to connections that break, and that would end the process.
  const native = client.config.connectionPool;
  native?.on?.("error", () => {});
  native?.on?.("acquire", (connection: any) => connection.removeListener("error", ignore).on("error", ignore));
  return {
    name: "knex",
    connections: client.pool?.max ?? native?.options?.max ?? null,
    abandons: true,
    async run(sql, parameters, tx) {
      // Its connection may serve somebody else by now.
      if (tx !== undefined && (tx as any).isCompleted?.()) throw noTransaction("The Transaction");
      const lender = tx === undefined ? client : (tx as any).client;
      const connection = await lender.acquireConnection();
      try {
        return (await connection.query({ text: sql, values: [...parameters] })).rows;
      } finally {
        await lender.releaseConnection(connection);
      }
    },
    async transaction(body) {
      const connection = await client.acquireConnection();
      const release = (destroy: boolean) => client.releaseConnection(destroy ? disposed(connection) : connection);
      const open = (quiet: unknown, inside: any) => knex.transaction(inside, { connection: quiet });
      return pgTransaction({ client: connection, release, open }, body);
    },
  };
}

const ignore = () => {};

/** With Knex' own mark for its pool, not to use it again. A client of a native pool is closed when it is released. */
function disposed(connection: any): any {
  connection.__knex__disposed ??= "closed by Oncekey";
  if (typeof connection.release !== "function") connection.end().catch(() => {});
  return connection;
}
