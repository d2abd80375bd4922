import type { Driver } from "../stores/postgres/driver-port.ts";
import { pgTransaction } from "./_pg-transaction.ts";
import { begun, unsafeRows } from "./_postgres-js-begin.ts";

/** What is used of Drizzle's `db`. */
export interface DrizzleLike {
  transaction(body: (tx: any) => Promise<any>, config?: any): Promise<any>;
  readonly _: object;
}

/** The transaction type that Drizzle hands out, schema and all. */
export type TransactionOf<Db> = Db extends { transaction(body: (tx: infer Tx) => any, config?: any): any } ? Tx : never;

/**
 * Drives PostgreSQL through Drizzle (`drizzle-orm` 0.4x) over a `pg` pool or over Postgres.js. Transactions are Drizzle's
 * own. Statements of ours go past it, straight to its client: neither its logger nor its errors show what they carry.
 * Throws `TypeError` for any other client.
 */
export function fromDrizzle<Db extends DrizzleLike>(db: Db): Driver<TransactionOf<Db>> {
  const { client } = sessionOf(db);
  const isPostgresJs = typeof client?.begin === "function" && !client.options?.transform?.column?.from;
  if (isPostgresJs) return overPostgresJs(db, client);
  if (typeof client?.connect === "function" && typeof client.options?.max === "number") return overPg(db, client);
  throw new TypeError("fromDrizzle takes drizzle() over a pg Pool, or over Postgres.js without a column transform.");
}

const sessionOf = (db: any) => db._.session;

/** Drizzle's session on a client of our choice. It opens its transactions there. */
const sessionOn = (db: DrizzleLike, client: unknown) => Object.create(sessionOf(db), { client: { value: client } });

function overPg(db: DrizzleLike, pool: any): Driver<any> {
  // Without a listener, an idle connection that breaks ends the process. The pool drops the client by itself.
  if (pool.listenerCount("error") === 0) pool.on("error", () => {});
  return {
    name: "drizzle",
    connections: pool.options.max,
    abandons: true,
    run: async (text, parameters, tx) =>
      (await (tx ? sessionOf(tx).client : pool).query({ text, values: [...parameters] })).rows,
    async transaction(body) {
      const client = await pool.connect();
      const open = (quiet: unknown, inside: any) => sessionOn(db, quiet).transaction(inside);
      return pgTransaction({ client, release: (destroy) => client.release(destroy), open }, body);
    },
  };
}

function overPostgresJs(db: DrizzleLike, sql: any): Driver<any> {
  return {
    name: "drizzle",
    connections: sql.options.max,
    abandons: false,
    run: (statement, parameters, tx) => unsafeRows(tx ? sessionOf(tx).client : sql, statement, parameters),
    transaction: (body) => begun(sql, (tx) => sessionOn(db, { begin: (inside: any) => inside(tx) }).transaction(body)),
  };
}
