import { shop } from "../../lib/shop.ts";

export const dynamic = "force-dynamic";

/** Everything that was done. */
export async function GET(): Promise<Response> {
  const orders = await shop.pool.query("SELECT * FROM shop_order ORDER BY id");
  const refunds = await shop.pool.query("SELECT * FROM shop_refund ORDER BY id");
  return Response.json({ orders: orders.rows, refunds: refunds.rows });
}
