-- Marks captured entries of one operation whose owner is gone. The fences stay: a slow owner's completion still counts.
WITH session AS MATERIALIZED (
  SELECT
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
),
lapsed AS MATERIALIZED (
  SELECT id AS due_id
  FROM oncekey.entry
  WHERE state = 'in_progress'
    AND lease_until <= statement_timestamp()
    AND (not_before IS NULL OR not_before <= statement_timestamp())
    AND operation = $1::text
    AND run_kind = $2::text
    AND run_kind = 'capture'
    AND operation_version <= $3::int
  ORDER BY lease_until
  LIMIT $4::int
  FOR UPDATE SKIP LOCKED
),
marked AS (
  UPDATE oncekey.entry
  SET
    state = 'needs_recovery',
    reason = $5::text,
    not_before = greatest(lease_until, not_before),
    settles_at = greatest(lease_until, not_before) + $7::float8 * interval '1 millisecond',
    sweep_at = clock_timestamp() + $6::float8 * interval '1 millisecond',
    lease_until = NULL
  FROM session, lapsed
  WHERE id = due_id AND state = 'in_progress'
  RETURNING id
)
SELECT count(*)::int AS marked FROM marked;
