-- claim.sql for several entries in one synchronous commit. In the order of id, so that groups that meet wait in one
-- direction only; of two members with one id the first comes first. A member whose row is not returned found an entry.
WITH limits AS MATERIALIZED (
  SELECT
    set_config('lock_timeout', $2::text, true) AS lock_timeout,
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
)
INSERT INTO oncekey.entry (
  id, tenant, client, operation, key, run_kind, operation_version, fingerprint, wire_digest, fence, seed, input, context,
  correlation, state, created_at, lease_until
)
SELECT
  decode(id_hex, 'hex'), tenant, client, operation, key, run_kind, operation_version, decode(fingerprint_hex, 'hex'),
  decode(wire_digest_hex, 'hex'), decode(fence_hex, 'hex'), decode(seed_hex, 'hex'), decode(input_hex, 'hex'),
  decode(context_hex, 'hex'), correlation, 'in_progress', clock_timestamp(),
  clock_timestamp() + lease_ms * interval '1 millisecond'
FROM limits, json_to_recordset($1::text::json) AS member(
  place int, id_hex text, tenant text, client text, operation text, key text, run_kind text, operation_version int,
  fingerprint_hex text, wire_digest_hex text, fence_hex text, seed_hex text, input_hex text, context_hex text,
  correlation text, lease_ms float8
)
ORDER BY decode(id_hex, 'hex'), place
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
