import { type Driver, TransactionAbandoned, TransactionAborted } from "../stores/postgres/driver-port.ts";

/** What is used of a node-postgres client. */
export interface PgClient {
  query(config: { text: string; values: any[] }): Promise<{ rows: any[]; command: string }>;
  on(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
  release(destroy?: boolean): void;
}

/** What is used of a node-postgres pool. */
export interface PgPool {
  query(config: { text: string; values: any[] }): Promise<{ rows: any[] }>;
  connect(): Promise<PgClient>;
  on(event: "error", listener: (error: Error) => void): unknown;
  listenerCount(event: "error"): number;
  readonly options: { readonly max?: number | undefined };
}

/** The client type that a pool hands out. `connect` is overloaded; its promise form comes first. */
export type ClientOf<Pool> = Pool extends { connect: { (): Promise<infer Client>; (...args: any[]): any } }
  ? Client
  : never;

/** Drives PostgreSQL through a `pg` pool (8.x). Transactions are the pool's own `PoolClient`. */
export function fromPg<Pool extends PgPool>(pool: Pool): Driver<ClientOf<Pool>> {
  // Without a listener, an idle connection that breaks ends the process. The pool drops the client by itself.
  if (pool.listenerCount("error") === 0) pool.on("error", () => {});
  return {
    name: "pg",
    connections: pool.options.max ?? null,
    abandons: true,
    run: async (sql, parameters, tx) =>
      (await ((tx as PgClient | undefined) ?? pool).query({ text: sql, values: [...parameters] })).rows,
    transaction: async (body) => inTransaction(await pool.connect(), body as (tx: PgClient) => Promise<any>),
  };
}

async function inTransaction<R>(client: PgClient, body: (tx: PgClient) => Promise<R>): Promise<R> {
  const statement = (text: string) => client.query({ text, values: [] });
  const ignore = () => {};
  let destroy = true;
  client.on("error", ignore);
  try {
    await statement("BEGIN");
    const result = await body(client);
    const { command } = await statement("COMMIT");
    destroy = false;
    if (command !== "COMMIT") throw new TransactionAborted("COMMIT was answered with ROLLBACK");
    return result;
  } catch (error) {
    // Only an answered ROLLBACK makes the connection fit for the next one.
    if (destroy && !(error instanceof TransactionAbandoned)) destroy = !(await statement("ROLLBACK").catch(() => null));
    throw error;
  } finally {
    client.removeListener("error", ignore);
    client.release(destroy);
  }
}
