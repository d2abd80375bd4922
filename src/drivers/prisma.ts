import type { Driver, SqlRow } from "../stores/postgres/driver-port.ts";
import { bodyFirst } from "./_body-first.ts";
import { raiseAnswered, raiseWithCause } from "./_prisma-errors.ts";
import { type PrismaPool, releaseBroken } from "./_prisma-pool.ts";

/** What is used of Prisma Client. */
export interface PrismaLike {
  $transaction: any;
  $extends: any;
  $queryRawUnsafe(sql: string, ...parameters: any[]): PromiseLike<any>;
}

/** The transaction type that Prisma hands out: `Prisma.TransactionClient`, with the client's extensions. */
export type TransactionOf<Client> = Client extends {
  $transaction: { (...args: any[]): any; (body: (tx: infer Tx) => any, options?: any): any };
}
  ? Tx
  : never;

/** Options of {@link fromPrisma}. */
export interface PrismaDriverOptions {
  /**
   * The `pg` pool that `PrismaPg` was given. Its size is then known, and connections that broke in a transaction of
   * Prisma 6 come back to it. Default none.
   */
  readonly pool?: PrismaPool;
  /** Size of the pool, where `PrismaPg` made it. Default: of `pool`, else unknown. */
  readonly connections?: number;
  /** How long a transaction waits for a connection, in milliseconds (Prisma's `maxWait`). Default 10000. */
  readonly maxWaitMs?: number;
}

/** The longest time that a timer takes. How long an operation may run is for Oncekey to say. */
const NO_TIMEOUT_MS = 2_147_483_647;

/**
 * Drives PostgreSQL through Prisma Client 6 or 7 with `@prisma/adapter-pg`. Transactions are interactive transactions,
 * without Prisma's own time limit. A body cannot be given up, and the answer to COMMIT stays hidden: our last statement,
 * which always comes, is the proof.
 */
export function fromPrisma<Client extends PrismaLike>(
  client: Client,
  options: PrismaDriverOptions = {},
): Driver<TransactionOf<Client>> {
  const { pool, connections = pool?.options.max ?? null, maxWaitMs = 10_000 } = options;
  if (pool !== undefined) releaseBroken(pool, (client as any)._clientVersion);
  const settings = { timeout: NO_TIMEOUT_MS, maxWait: maxWaitMs };
  // Prisma buries SQLSTATE, where nobody looks who is to run a transaction again.
  const telling = client.$extends({
    query: { $allOperations: ({ args, query }: any) => query(args).catch(raiseWithCause) },
  });
  return {
    name: "prisma",
    connections,
    abandons: false,
    run: async (sql, parameters, tx) =>
      Promise.resolve<SqlRow[]>(((tx as any) ?? client).$queryRawUnsafe(sql, ...parameters)).catch(raiseAnswered),
    transaction: (body) => bodyFirst((inside) => telling.$transaction(inside, settings).catch(raiseAnswered), body),
  };
}
