import { defineHandler } from "nitro/h3";
import { pool } from "../lib/shop.ts";

/** Everything that was done. */
export default defineHandler(async () => {
  const orders = await pool.query("SELECT * FROM shop_order ORDER BY id");
  const refunds = await pool.query("SELECT * FROM shop_refund ORDER BY id");
  return { orders: orders.rows, refunds: refunds.rows };
});
