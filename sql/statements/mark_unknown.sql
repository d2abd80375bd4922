-- Nobody knows what happened. The fence stays: a slow owner's completion still counts. A provisional answer is kept
-- until there is a newer one.
WITH limits AS MATERIALIZED (
  SELECT
    set_config('lock_timeout', $6::text, true) AS lock_timeout,
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
)
UPDATE oncekey.entry
SET
  state = 'needs_recovery',
  reason = $3::text,
  -- The end of its last lease stays known: only long after it may "nothing happened" be believed.
  not_before = greatest(lease_until, not_before),
  settles_at = greatest(lease_until, not_before) + $8::float8 * interval '1 millisecond',
  sweep_at = clock_timestamp() + $7::float8 * interval '1 millisecond',
  lease_until = NULL,
  status = coalesce($4::int, status),
  outcome = coalesce($5::bytea, outcome)
FROM limits
WHERE id = $1::bytea AND fence = $2::bytea AND state IN ('in_progress', 'needs_recovery')
RETURNING true AS matched;
