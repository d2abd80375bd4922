/** An operation that no other part of the lab uses. */
export const OPERATION = "lab.charges";

/** What the sweep must never touch, and the purge neither: unresolved entries, old ones too. */
export const UNRESOLVED = 100;

const COMMON = "id, fence, seed, fingerprint, run_kind, tenant, operation, key, operation_version, created_at";

function common(prefix: string, runKind: string, createdAt: string): string {
  return `sha256(('${prefix}' || n)::bytea), uuid_send(gen_random_uuid()), uuid_send(gen_random_uuid()), '\\x01',
    '${runKind}', 'acme', '${OPERATION}', '${prefix}' || n, 1, ${createdAt}`;
}

/** Finished entries with an outcome of about 200 bytes; `expiresAt` in SQL. */
export function finishedRows(prefix: string, from: number, to: number, expiresAt: string): string {
  return `INSERT INTO oncekey.entry (${COMMON}, state, status, outcome, completed_at, expires_at)
    SELECT ${common(prefix, "phases", "now() - interval '2 days'")}, 'succeeded', 201,
      decode(repeat(md5(n::text), 12), 'hex'), now() - interval '2 days', ${expiresAt}
    FROM generate_series(${from}, ${to}) AS n`;
}

/** Entries whose owners died, the oldest last. */
export function lapsedRows(count: number): string {
  return `INSERT INTO oncekey.entry (${COMMON}, state, lease_until, input)
    SELECT ${common("lapsed", "phases", "now()")}, 'in_progress', now() - n * interval '1 second', '\\x01'
    FROM generate_series(1, ${count}) AS n`;
}

/** Entries that nobody has settled for years. */
export function unresolvedRows(): string {
  return `INSERT INTO oncekey.entry (${COMMON}, state, reason, not_before)
    SELECT ${common("unresolved", "capture", "now() - interval '3 years'")}, 'needs_recovery', 'handler_threw',
      now() - interval '3 years'
    FROM generate_series(1, ${UNRESOLVED}) AS n`;
}
