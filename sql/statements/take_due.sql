-- Takes over entries of one operation that are due, oldest first, each under a fence of its own: those whose lease
-- lapsed, and those that wait for the sweeper. Rows that somebody else holds are skipped. statement_timestamp(), because
-- only a stable function can bound the partial indexes; clock_timestamp() would filter row by row.
WITH session AS MATERIALIZED (
  SELECT
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
),
lapsed AS MATERIALIZED (
  SELECT
    id AS due_id, fence AS from_fence, state AS from_state, lease_until AS due_at,
    greatest(lease_until, not_before) AS idle_since, settles_at AS settled_from
  FROM oncekey.entry
  WHERE state = 'in_progress'
    AND lease_until <= statement_timestamp()
    AND (not_before IS NULL OR not_before <= statement_timestamp())
    AND operation = $1::text
    AND run_kind = $2::text
    AND operation_version <= $3::int
    -- Nobody knows what a captured run did: it is marked before it is asked about.
    AND run_kind = 'phases'
    -- Without its input only a retry can go on; such entries must not stand in front of others for ever.
    AND input IS NOT NULL
  ORDER BY lease_until
  LIMIT $4::int
  FOR UPDATE SKIP LOCKED
),
waiting AS MATERIALIZED (
  SELECT
    id AS due_id, fence AS from_fence, state AS from_state, sweep_at AS due_at, not_before AS idle_since,
    settles_at AS settled_from
  FROM oncekey.entry
  WHERE sweep_at <= statement_timestamp()
    -- Marking keeps the fence: a slow owner may still complete it while its last lease runs.
    AND (not_before IS NULL OR not_before <= statement_timestamp())
    AND state IN ('needs_recovery', 'released')
    AND operation = $1::text
    AND run_kind = $2::text
    AND operation_version <= $3::int
    AND (run_kind <> 'phases' OR input IS NOT NULL)
  ORDER BY sweep_at
  LIMIT $4::int
  FOR UPDATE SKIP LOCKED
),
due AS MATERIALIZED (
  SELECT joined.*
  FROM session, (SELECT * FROM lapsed UNION ALL SELECT * FROM waiting) AS joined
  ORDER BY due_at
  LIMIT $4::int
)
UPDATE oncekey.entry
SET
  state = 'in_progress',
  fence = uuid_send(gen_random_uuid()),
  attempt = attempt + 1,
  lease_until = clock_timestamp() + $5::float8 * interval '1 millisecond',
  not_before = NULL,
  sweep_at = NULL,
  settles_at = NULL
FROM due
WHERE id = due_id AND fence = from_fence AND state = from_state
RETURNING
  from_state,
  (extract(epoch FROM due_at) * 1000)::float8 AS due_at,
  coalesce(extract(epoch FROM clock_timestamp() - idle_since) * 1000, 0)::float8 AS idle_ms,
  (extract(epoch FROM settled_from - clock_timestamp()) * 1000)::float8 AS settled_in_ms,
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
