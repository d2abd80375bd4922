import type { ClientErrorCode } from "../../core/errors.ts";
import type { RefusalRow } from "../profile.ts";

/** What passes by itself: nothing is wrong with the request, and the same one with the same key is to come again. */
type PassingCode = Extract<
  ClientErrorCode,
  | "idempotency_store_unavailable"
  | "idempotency_lease_lost"
  | "idempotency_commit_unknown"
  | "idempotency_contention"
  | "idempotency_closing"
  | "idempotency_version_unknown"
>;

/** One row for all that passes by itself; a dialect that tells some of it apart writes those rows after these. */
export function unavailable(row: RefusalRow): Readonly<Record<PassingCode, RefusalRow>> {
  return {
    idempotency_store_unavailable: row,
    idempotency_lease_lost: row,
    idempotency_commit_unknown: row,
    idempotency_contention: row,
    idempotency_closing: row,
    idempotency_version_unknown: row,
  };
}
