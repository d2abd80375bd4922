import { TransactionAbandoned } from "../stores/postgres/driver-port.ts";
import { runBeneath } from "./_pg-client.ts";

/** What an undone attempt left pending would be written by the caller's next flush: written here, it is undone as well. */
export async function forgetPending(client: any, tx: any, undo: string): Promise<void> {
  await runBeneath(client, undo, []);
  await tx.flush().catch(() => tx.clear());
}

/**
 * Closes a connection whose BEGIN, COMMIT or ROLLBACK was not answered in time. Knex gives it back all the same, and what
 * the next one writes there as a commit of its own would be part of a transaction that nobody ends.
 */
export function closeUnended(pool: any, error: any, { sql, __knexUid }: any): void {
  if (!/^(?:BEGIN|COMMIT|ROLLBACK);?$/.test(sql) || /^[0-9A-Z]{5}$/.test(error?.code)) return;
  const connection = pool.used.find(({ resource }: any) => resource.__knexUid === __knexUid)?.resource;
  if (connection === undefined) return;
  connection.__knex__disposed = "not ended";
  connection.connection.stream.destroy();
}

/** Ends the connection under a body that may still use it; marked so, its pool never hands it out again. */
export async function giveUp(client: any, error: unknown): Promise<never> {
  if (error instanceof TransactionAbandoned) {
    client.__knex__disposed = "given up";
    client.connection.stream.destroy();
  }
  throw error;
}
