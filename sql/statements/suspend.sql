-- Keeps the entry in progress, claimable only later: something already sent may still land.
WITH limits AS MATERIALIZED (
  SELECT
    set_config('lock_timeout', $4::text, true) AS lock_timeout,
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
)
UPDATE oncekey.entry
SET
  lease_until = clock_timestamp() + $3::float8 * interval '1 millisecond',
  not_before = clock_timestamp() + $3::float8 * interval '1 millisecond'
FROM limits
WHERE id = $1::bytea AND fence = $2::bytea AND state = 'in_progress'
RETURNING true AS matched;
