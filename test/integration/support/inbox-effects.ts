import type { ConsumeOptions, ConsumeResult, IncomingDelivery, Oncekey } from "oncekey";
import type pg from "pg";

/** Takes one delivery in; its effect is a row of the business table. */
export function consumeOne(
  once: Oncekey<pg.PoolClient>,
  delivery: IncomingDelivery,
  options: ConsumeOptions = {},
): Promise<ConsumeResult<void>> {
  return once.consume(delivery, ({ tx }) => insertEffect(tx, delivery.id), options);
}

/** A row of the business table. */
export async function insertEffect(tx: pg.PoolClient, key: string, amount = 1): Promise<void> {
  await tx.query("INSERT INTO effect (kind, key, amount, pid) VALUES ('delivery', $1, $2, $3)", [
    key,
    amount,
    process.pid,
  ]);
}
