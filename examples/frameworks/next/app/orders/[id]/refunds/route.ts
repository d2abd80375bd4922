import { redirect } from "next/navigation";
import type { NextRequest } from "next/server";
import { idempotent } from "oncekey/next";
import { scopeOf, shop } from "../../../../lib/shop.ts";

/** An existing handler, untouched. */
async function refundOrder(request: NextRequest, context: { params: Promise<{ id: string }> }): Promise<Response> {
  const { id } = await context.params;
  const { reason } = (await request.json()) as { reason?: string };
  const refund = `ref_${Math.random().toString(36).slice(2)}`;
  await shop.pool.query("INSERT INTO shop_refund VALUES ($1, $2)", [refund, id]);
  if (reason === "see") redirect(`/refunds/${refund}`);
  return Response.json({ id: refund, order: id }, { status: 201, headers: { "set-cookie": "seen=1" } });
}

export const POST = idempotent(shop.createRefund, { scope: scopeOf }, refundOrder);
