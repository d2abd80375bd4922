import type { Driver } from "../stores/postgres/driver-port.ts";
import { pgQuery } from "./_pg-client.ts";
import { pgTransaction } from "./_pg-transaction.ts";

/** What is used of a node-postgres client. */
export interface PgClient {
  query(config: { text: string; values: any[]; name?: string }): Promise<{ rows: any[]; command: string }>;
  on(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
  release(destroy?: boolean): void;
}

/** What is used of a node-postgres pool. */
export interface PgPool {
  query(config: { text: string; values: any[]; name?: string }): Promise<{ rows: any[] }>;
  connect(): Promise<PgClient>;
  on(event: "error", listener: (error: Error) => void): unknown;
  listenerCount(event: "error"): number;
  readonly options: { readonly max?: number | undefined };
}

/** The client type that a pool hands out. `connect` is overloaded; its promise form comes first. */
export type ClientOf<Pool> = Pool extends { connect: { (): Promise<infer Client>; (...args: any[]): any } }
  ? Client
  : never;

/** Options of {@link fromPg}. */
export interface PgDriverOptions {
  /**
   * Keeps Oncekey's own statements prepared on each connection, under names. Never where a pooler may sit between, unless
   * it keeps prepared statements itself. Default false.
   */
  readonly named?: boolean;
}

/**
 * Drives PostgreSQL through a `pg` pool (8.x). Transactions are the pool's own `PoolClient`; what a body left running is
 * refused there after its end, since it would commit on its own.
 */
export function fromPg<Pool extends PgPool>(
  pool: Pool,
  { named = false }: PgDriverOptions = {},
): Driver<ClientOf<Pool>> {
  // Without a listener, an idle connection that breaks ends the process. The pool drops the client by itself.
  if (pool.listenerCount("error") === 0) pool.on("error", () => {});
  return {
    name: "pg",
    connections: pool.options.max ?? null,
    abandons: true,
    run: async (sql, parameters, tx) =>
      (await ((tx as PgClient | undefined) ?? pool).query(pgQuery(sql, parameters, named))).rows,
    async transaction(body) {
      const client = await pool.connect();
      const open = (quiet: unknown, inside: (tx: any) => Promise<unknown>) => inside(quiet);
      return pgTransaction({ client, release: (destroy) => client.release(destroy), open }, body);
    },
  };
}
