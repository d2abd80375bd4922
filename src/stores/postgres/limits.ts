import type { TransactionLimits } from "../../core/store.ts";

/** A time limit as PostgreSQL's settings take it: whole milliseconds, at least one, since 0 means "none". */
export function milliseconds(ms: number): string {
  return String(Math.min(Math.max(1, Math.round(ms)), 2_147_483_647));
}

/** lock_timeout and idle time-out of a transaction as text. */
export function limitParameters(limits: TransactionLimits): [string, string] {
  return [milliseconds(limits.lockTimeoutMs), milliseconds(limits.idleTimeoutMs)];
}
