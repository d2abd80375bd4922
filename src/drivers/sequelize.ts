import type { Driver } from "../stores/postgres/driver-port.ts";
import { commitWatch } from "./_commit-watch.ts";
import { overWhileNested } from "./_nested.ts";
import { noTransaction, runBeneath, runBorrowed } from "./_pg-client.ts";
import { closeNested, giveUp } from "./_sequelize.ts";

/** What is used of Sequelize. */
export interface SequelizeLike {
  transaction(body: (tx: any) => Promise<unknown>): Promise<unknown>;
}

/** The transaction type of Sequelize; of the overloads of `transaction`, the last hands it out. */
export type TransactionOf<Sequelize> = Sequelize extends { transaction: (options?: any) => Promise<infer Tx> }
  ? Tx
  : never;

/**
 * Drives PostgreSQL through Sequelize 6. Transactions are its own `Transaction`, passed to its methods as
 * `{ transaction: tx }`, or implied where CLS is on.
 */
export function fromSequelize<Sequelize extends SequelizeLike>(sequelize: Sequelize): Driver<TransactionOf<Sequelize>> {
  const { connectionManager } = sequelize as any;
  const lender = {
    take: () => connectionManager.getConnection({ useMaster: true }),
    give: (client: unknown) => connectionManager.releaseConnection(client),
  };
  return {
    name: "sequelize",
    connections: (connectionManager.pool.write ?? connectionManager.pool).maxSize,
    abandons: true,
    async run(sql, parameters, tx) {
      if (tx !== undefined) return runBeneath(clientOf(tx), sql, parameters);
      return runBorrowed(lender, sql, parameters);
    },
    transaction: (body) => inTransaction(sequelize, body as (tx: any) => Promise<any>),
  };
}

function clientOf(tx: any): any {
  if (tx.finished || !tx.connection) throw noTransaction("The Transaction");
  return tx.connection;
}

async function inTransaction(sequelize: SequelizeLike, body: (tx: any) => Promise<any>): Promise<any> {
  const commit = commitWatch();
  const ending = sequelize.transaction(async (tx) => {
    const result = await body(tx).catch((error) => giveUp(tx, error));
    if (closeNested(tx)) throw overWhileNested();
    commit.watch(tx.connection);
    return result;
  });
  return commit.proven(ending);
}
