-- Entries of one operation whose lease lapsed, oldest first. statement_timestamp(), because only a stable function can
-- bound the partial index; clock_timestamp() would filter row by row.
SELECT
  -- entry columns
  id, tenant, client, operation, key, run_kind, operation_version, state, fingerprint, wire_digest, fence, seed,
  attempt, recovery_point, reason, status, outcome, outcome_gone, input, context,
  (extract(epoch FROM created_at) * 1000)::float8 AS created_at,
  (extract(epoch FROM completed_at) * 1000)::float8 AS completed_at,
  (extract(epoch FROM expires_at) * 1000)::float8 AS expires_at,
  (extract(epoch FROM clock_timestamp() - created_at) * 1000)::float8 AS age_ms,
  coalesce(extract(epoch FROM greatest(lease_until, not_before) - clock_timestamp()) * 1000, 0)::float8 AS claimable_in_ms,
  coalesce(expires_at <= clock_timestamp(), false) AS expired,
  coalesce(expires_at <= clock_timestamp() AND tombstone_until > clock_timestamp(), false) AS tombstoned
  -- end of entry columns
FROM oncekey.entry
WHERE state = 'in_progress'
  AND lease_until <= statement_timestamp()
  AND (not_before IS NULL OR not_before <= statement_timestamp())
  AND operation = $1::text
  AND run_kind = $2::text
  AND operation_version <= $3::int
  -- Without its input only a retry can go on; such entries must not stand in front of others for ever.
  AND (run_kind <> 'phases' OR input IS NOT NULL)
ORDER BY lease_until
LIMIT $4::int;
