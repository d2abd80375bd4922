-- A compare-and-set on what the taker saw. clock_timestamp(), because the row may have been waited for: now() would be the
-- start of the wait. Where the wait ended with the row unchanged, the instant is still that of the first look, so the lease
-- is shorter by the wait: a quarter of it at most (lock_timeout), and the taker counts its own deadline from before it asked.
WITH limits AS MATERIALIZED (
  SELECT
    set_config('lock_timeout', $7::text, true) AS lock_timeout,
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
)
UPDATE oncekey.entry
SET
  state = 'in_progress',
  fence = $5::bytea,
  attempt = attempt + 1,
  lease_until = clock_timestamp() + $6::float8 * interval '1 millisecond',
  not_before = NULL,
  -- Both spoke of the attempts before; how this one ends says when to look again.
  sweep_at = NULL,
  settles_at = NULL
FROM limits
WHERE id = $1::bytea
  AND fence = $2::bytea
  AND attempt = $3::int
  AND state = $4::text
  AND state IN ('in_progress', 'released', 'needs_recovery')
  AND (state <> 'in_progress' OR greatest(lease_until, not_before) <= clock_timestamp())
RETURNING
  -- entry columns
  id, tenant, client, operation, key, run_kind, operation_version, state, fingerprint, wire_digest, fence, seed,
  attempt, recovery_point, reason, status, outcome, outcome_gone, body_pointer, input, context, correlation,
  (extract(epoch FROM created_at) * 1000)::float8 AS created_at,
  (extract(epoch FROM completed_at) * 1000)::float8 AS completed_at,
  (extract(epoch FROM expires_at) * 1000)::float8 AS expires_at,
  (extract(epoch FROM clock_timestamp() - created_at) * 1000)::float8 AS age_ms,
  coalesce(extract(epoch FROM greatest(lease_until, not_before) - clock_timestamp()) * 1000, 0)::float8 AS claimable_in_ms,
  coalesce(expires_at <= clock_timestamp(), false) AS expired,
  coalesce(expires_at <= clock_timestamp() AND tombstone_until > clock_timestamp(), false) AS tombstoned,
  (extract(epoch FROM sweep_at - clock_timestamp()) * 1000)::float8 AS sweep_in_ms,
  (extract(epoch FROM settles_at - clock_timestamp()) * 1000)::float8 AS settles_in_ms
  -- end of entry columns;
