import { defineHandler, HTTPError, readBody, setCookie, toResponse } from "nitro/h3";
import { idempotent } from "oncekey/h3";
import { createRefund, pool, scopeOf } from "../../../lib/shop.ts";

/** An existing handler, untouched. */
const refundOrder = defineHandler(async (event) => {
  const order = decodeURIComponent(event.context.params?.id ?? "");
  const { reason } = (await readBody<{ reason?: string }>(event)) ?? {};
  if (reason === "unknown") throw new HTTPError({ status: 404, message: "no such order" });
  const id = `ref_${Math.random().toString(36).slice(2)}`;
  await pool.query("INSERT INTO shop_refund VALUES ($1, $2)", [id, order]);
  setCookie(event, "seen", "1");
  event.res.status = 201;
  return { id, order };
});

export default idempotent(createRefund, { scope: scopeOf, toResponse }, refundOrder);
