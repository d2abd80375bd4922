import { AUDIT_BEGIN, auditPage } from "../../stores/postgres/operator/audit.ts";
import { cursorPlace, cursorText } from "../cursor.ts";
import { type Call, look } from "../parts.ts";

const PAGE = 50;
const PLACE = /^\d{1,19}$/;

/** `GET audit`: what was done by hand, newest first. */
export async function getAudit(call: Call) {
  const before = cursorPlace(call.asked.query.get("cursor"), { resolution: PLACE, audit: PLACE }) ?? AUDIT_BEGIN;
  const { records, next } = await look(call, (ask) => auditPage(ask, call.tenant, before, PAGE));
  return { records, next: cursorText(next) };
}
