-- For operators: the entries of a key, without what clients sent or were answered. Scans the table (see migration 1).
SELECT
  encode(id, 'hex') AS id, tenant, client, operation, key, run_kind, operation_version, state, attempt, recovery_point,
  reason, status, outcome_gone,
  (extract(epoch FROM created_at) * 1000)::float8 AS created_at,
  (extract(epoch FROM lease_until) * 1000)::float8 AS lease_until,
  (extract(epoch FROM not_before) * 1000)::float8 AS not_before,
  (extract(epoch FROM completed_at) * 1000)::float8 AS completed_at,
  (extract(epoch FROM expires_at) * 1000)::float8 AS expires_at,
  (extract(epoch FROM tombstone_until) * 1000)::float8 AS tombstone_until,
  (extract(epoch FROM sweep_at) * 1000)::float8 AS sweep_at,
  (extract(epoch FROM settles_at) * 1000)::float8 AS settles_at,
  correlation
FROM (
  SELECT
    id, tenant, client, operation, key, run_kind, operation_version, state, attempt, recovery_point, reason, status,
    outcome_gone, created_at, lease_until, not_before, completed_at, expires_at, tombstone_until, sweep_at, settles_at,
    correlation
  FROM oncekey.entry
  WHERE key = $1::text
    AND ($2::text IS NULL OR tenant = $2::text)
    AND ($3::text IS NULL OR operation = $3::text)
  UNION ALL
  SELECT
    id, tenant, client, operation, key, run_kind, operation_version, state, attempt, recovery_point, reason, status,
    outcome_gone, created_at, lease_until, not_before, completed_at, expires_at, tombstone_until, sweep_at, settles_at,
    correlation
  FROM oncekey.outcome
  WHERE key = $1::text
    AND ($2::text IS NULL OR tenant = $2::text)
    AND ($3::text IS NULL OR operation = $3::text)
    AND expires_at > statement_timestamp()
) AS entry
ORDER BY created_at, id
LIMIT 1000;
