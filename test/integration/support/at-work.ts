import type pg from "pg";
import type { Order, Place } from "./orders.ts";

/** Who is at work on an order, for all processes: a second one at the same time meets the primary key. */
export const AT_WORK_TABLE = "CREATE TABLE at_work (key text PRIMARY KEY)";

/** Keeps the table, in the transactions of the work itself. */
export async function atWork(place: Place, { order }: Order, tx: pg.PoolClient | undefined): Promise<void> {
  if (place === "phase") await tx?.query("INSERT INTO at_work VALUES ($1)", [order]);
  if (place === "complete") await tx?.query("DELETE FROM at_work WHERE key = $1", [order]);
}
