import { TransactionAbandoned } from "../stores/postgres/driver-port.ts";

/** Destroys the connection under a body that may still use it; so marked, Sequelize sends no ROLLBACK and refuses every use. */
export async function giveUp(tx: any, error: unknown): Promise<never> {
  closeNested(tx);
  if (error instanceof TransactionAbandoned) {
    tx.finished = "rollback";
    tx.connection.connection?.stream.destroy();
    await tx.forceCleanup();
  }
  throw error;
}

/** Whether nested transactions of Sequelize were still open. It would go on sending their statements after the end of all. */
export function closeNested(tx: any): boolean {
  const open = tx.savepoints.filter((nested: any) => closeNested(nested) || !nested.finished);
  for (const nested of open) nested.finished = "rollback";
  return open.length > 0;
}
