import { idBytes } from "../../../core/identity.ts";
import { instant, text, textOrNull } from "../rows.ts";
import type { Ask } from "./reading.ts";

/** What an operator did that is no decision about an entry. */
export type AuditAction =
  | "sign_in"
  | "reveal_key"
  | "reveal_derived_keys"
  | "reveal_outcome"
  | "retry"
  | "resend"
  | "discard";

/** A row of the audit: a decision about an entry, or anything else that was done by hand. */
export interface AuditRecord {
  readonly at: Date;
  readonly by: string;
  readonly action: AuditAction | "resolve";
  /** Hex. */
  readonly entryId: string | null;
  readonly messageId: string | null;
  readonly tenant: string | null;
  readonly verdict: string | null;
  readonly note: string | null;
}

/** Two places, decimal digits: audit and decisions have a sequence each. */
export interface AuditPlace {
  readonly resolution: string;
  readonly audit: string;
}

/** Newer than every row. */
export const AUDIT_BEGIN: AuditPlace = { resolution: "9223372036854775807", audit: "9223372036854775807" };

/** One page of the audit, newest first. Raises as `ask` does. */
export async function auditPage(
  ask: Ask,
  tenant: string | null,
  before: AuditPlace,
  limit: number,
): Promise<{ readonly records: readonly AuditRecord[]; readonly next: AuditPlace | null }> {
  const rows = await ask("console_audit", [tenant, before.resolution, before.audit, limit + 1]);
  const shown = rows.slice(0, limit);
  const last = (source: string) => shown.filter((row) => row.source === source).at(-1);
  const [resolution, audit] = [last("resolution"), last("audit")];
  const records = shown.map((row) => ({
    at: instant(row, "at"),
    by: text(row, "by_name"),
    action: text(row, "action") as AuditRecord["action"],
    entryId: textOrNull(row, "entry_id"),
    messageId: textOrNull(row, "message_id"),
    tenant: textOrNull(row, "tenant"),
    verdict: textOrNull(row, "verdict"),
    note: textOrNull(row, "note"),
  }));
  if (rows.length <= limit) return { records, next: null };
  return {
    records,
    next: {
      resolution: resolution === undefined ? before.resolution : text(resolution, "place"),
      audit: audit === undefined ? before.audit : text(audit, "place"),
    },
  };
}

/** What is noted of an action. */
export interface AuditNote {
  readonly action: AuditAction;
  readonly by: string;
  readonly tenant: string | null;
  /** Hex. */
  readonly entryId?: string;
  readonly note: string | null;
}

/** Adds a row to the audit, in the caller's transaction. Raises as `ask` does. */
export async function noteAction(ask: Ask, { action, by, tenant, entryId, note }: AuditNote): Promise<void> {
  const id = entryId === undefined ? null : idBytes(entryId);
  await ask("console_note", [action, by, tenant, id, null, note]);
}

/** What was done by hand with one entry, oldest first, but for decisions about it. Raises as `ask` does. */
export async function entryNotes(
  ask: Ask,
  id: string,
): Promise<readonly Pick<AuditRecord, "at" | "by" | "action" | "note">[]> {
  return (await ask("console_entry_notes", [idBytes(id)])).map((row) => ({
    at: instant(row, "acted_at"),
    by: text(row, "acted_by"),
    action: text(row, "action") as AuditAction,
    note: textOrNull(row, "note"),
  }));
}
