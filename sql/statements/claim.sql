-- Inserts the claim in a commit of its own: a synchronous one, unless its operation has said that it may be lost. DO NOTHING, never DO UPDATE … WHERE: that locks and writes even
-- when its condition is false. The lock_timeout bounds the wait behind another insert of the same identity, so that a
-- lease can never be dead at birth.
WITH limits AS MATERIALIZED (
  SELECT
    set_config('lock_timeout', $16::text, true) AS lock_timeout,
    CASE
      WHEN $17::text = 'asynchronous' THEN set_config('synchronous_commit', 'off', true)
      ELSE CASE current_setting('synchronous_commit')
        WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
      END
    END AS synchronous
)
INSERT INTO oncekey.entry (
  id, tenant, client, operation, key, run_kind, operation_version, fingerprint, wire_digest, fence, seed, input, context,
  correlation, state, created_at, lease_until
)
SELECT
  $1::bytea, $2::text, $3::text, $4::text, $5::text, $6::text, $7::int, $8::bytea, $9::bytea, $10::bytea, $11::bytea,
  $12::bytea, $13::bytea, $14::text, 'in_progress', clock_timestamp(),
  clock_timestamp() + $15::float8 * interval '1 millisecond'
FROM limits
ON CONFLICT (id) DO NOTHING
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
