import type { Driver } from "../stores/postgres/driver-port.ts";
import { commitWatch } from "./_commit-watch.ts";
import { closeUnended, forgetPending, giveUp } from "./_mikro-orm.ts";
import { noTransaction, runBeneath, runBorrowed } from "./_pg-client.ts";

/** What is used of MikroORM. */
export interface MikroOrmLike {
  readonly em: { fork(): any; getConnection(type?: "write"): any };
}

/** The transaction type of MikroORM: its entity manager, forked. */
export type TransactionOf<Orm> = Orm extends { em: infer Manager } ? Manager : never;

/**
 * Drives PostgreSQL through MikroORM 6 (`@mikro-orm/postgresql`). Transactions are a fork of its `EntityManager`. What was
 * persisted in it is flushed before each statement of ours, so that it is written before the entry and commits with it.
 */
export function fromMikroOrm<Orm extends MikroOrmLike>(orm: Orm): Driver<TransactionOf<Orm>> {
  const knex = () => orm.em.getConnection("write").getKnex().client;
  knex().on("query-error", (error: unknown, query: unknown) => closeUnended(knex().pool, error, query));
  const lender = { take: () => knex().acquireConnection(), give: (used: unknown) => knex().releaseConnection(used) };
  return {
    name: "mikro-orm",
    connections: knex().pool.max,
    abandons: true,
    async run(sql, parameters, tx) {
      if (tx === undefined) return runBorrowed(lender, sql, parameters);
      const client = await clientOf(tx);
      if (/^ROLLBACK TO /m.test(sql)) await forgetPending(client, tx, sql);
      else await (tx as any).flush();
      return runBeneath(client, sql, parameters);
    },
    transaction: (body) => inTransaction(orm.em.fork(), body as (tx: any) => Promise<any>),
  };
}

async function clientOf(em: any): Promise<any> {
  const trx = em.getTransactionContext();
  if (trx === undefined || trx.isCompleted()) throw noTransaction("The EntityManager");
  return trx.client.acquireConnection();
}

async function inTransaction(em: any, body: (tx: any) => Promise<any>): Promise<any> {
  const commit = commitWatch();
  const ending = em.transactional(async (tx: any) => {
    const client = await clientOf(tx);
    const result = await body(tx).catch((error) => giveUp(client, error));
    commit.watch(client);
    return result;
  });
  return commit.proven(ending);
}
