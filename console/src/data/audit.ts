import { type Asking, ask, pathWith } from "./request.ts";

/** Something that was done by hand. */
export interface AuditRecord {
  readonly at: string;
  readonly by: string;
  readonly action: string;
  readonly entryId: string | null;
  readonly messageId?: string | null;
  readonly tenant: string | null;
  readonly verdict: string | null;
  readonly note: string | null;
}

/** One page of the audit, newest first. */
export interface AuditPage {
  readonly records: readonly AuditRecord[];
  readonly next: string | null;
}

/** Raises `RequestError`. */
export const audit = (cursor: string | null, asking: Asking) => ask<AuditPage>(pathWith("audit", { cursor }), asking);
