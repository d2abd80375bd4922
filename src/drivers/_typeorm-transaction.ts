import { TransactionAbandoned } from "../stores/postgres/driver-port.ts";
import { commitWatch } from "./_commit-watch.ts";
import { overWhileNested } from "./_nested.ts";
import { noTransaction } from "./_pg-client.ts";

/** START TRANSACTION, body, COMMIT on a query runner of TypeORM of its own, which is released. */
export async function typeOrmTransaction(runner: any, body: (tx: any) => Promise<any>): Promise<any> {
  const client = await runner.connect();
  let hasBegun = false;
  let broken: unknown;
  const release = runner.releasePostgresConnection.bind(runner);
  // A lost connection would be given back in the middle, and what says so later says nothing of a connection.
  runner.releasePostgresConnection = async (error: unknown) => {
    broken ??= error;
  };
  try {
    await runner.startTransaction();
    hasBegun = true;
    refuseStrays(runner);
    const result = await body(runner.manager);
    if (runner.transactionDepth > 1) throw overWhileNested();
    await commitWatch(client).proven(runner.commitTransaction());
    return result;
  } catch (error) {
    // Only an answered ROLLBACK makes the connection fit for the next one: BEGIN may have been carried out unheard.
    if (!hasBegun || error instanceof TransactionAbandoned) broken = error;
    else if (runner.isTransactionActive) {
      // Under a nested transaction that is still going on, TypeORM would roll back to its savepoint only.
      runner.transactionDepth = 1;
      await runner.rollbackTransaction().catch((lost: unknown) => (broken = lost));
    }
    throw error;
  } finally {
    await release(broken);
  }
}

/** While it ends, and for good after ROLLBACK: what the body left running would be sent behind it, and commit on its own. */
function refuseStrays(runner: any): void {
  const query = runner.query.bind(runner);
  let end = "";
  runner.query = async (sql: string, ...rest: any[]) => {
    const isEnd = /^(?:COMMIT|ROLLBACK)$/.test(sql);
    if (end !== "" && !isEnd) throw noTransaction("The EntityManager");
    if (isEnd) end = sql;
    const result = await query(sql, ...rest);
    // Subscribers may write once it is committed.
    if (sql === "COMMIT") end = "";
    return result;
  };
}
