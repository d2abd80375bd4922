-- read.sql for several identities. One statement, no write. One row a member: without an entry its columns are null, and
-- an entry longer than $2 bytes is not sent (`long`), so that one answer cannot grow without bound. OFFSET 0 keeps each
-- look-up one of the primary key: as a join it would read a small table whole.
SELECT
  wanted.place::int AS place,
  coalesce(known.long, false) AS long,
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
CROSS JOIN json_array_elements_text($1::text::json) WITH ORDINALITY AS wanted(id_hex, place)
LEFT JOIN LATERAL (
  SELECT
    coalesce(octet_length(input), 0) + coalesce(octet_length(context), 0) + coalesce(octet_length(outcome), 0)
      > $2::int AS long
  FROM oncekey.entry
  WHERE id = decode(wanted.id_hex, 'hex')
  OFFSET 0
) AS known ON true
LEFT JOIN LATERAL (
  SELECT * FROM oncekey.entry WHERE id = decode(wanted.id_hex, 'hex') AND NOT known.long OFFSET 0
) AS entry ON true;
