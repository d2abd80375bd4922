-- read.sql in the partitioned layout: the entry of an identity, wherever it lies. A completion may move it between two
-- statements, never within one. What has expired in a partition is absent, so that partitions that are past are not read.
SELECT
  guarded,
  layout.name = 'partitioned' AS apart,
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
  -- end of entry columns
FROM oncekey.layout
LEFT JOIN (
  SELECT * FROM oncekey.entry WHERE id = $1::bytea
  UNION ALL
  SELECT * FROM oncekey.outcome WHERE id = $1::bytea AND expires_at > statement_timestamp()
) AS entry ON true;
