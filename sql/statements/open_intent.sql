-- Commits an intent before its call, or restarts the age of an open one. The entry's row is locked, so that no
-- takeover can come between; the age counts from after the lock. What was first written of it stays.
WITH limits AS MATERIALIZED (
  SELECT
    set_config('lock_timeout', $7::text, true) AS lock_timeout,
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
),
fenced AS MATERIALIZED (
  SELECT id FROM oncekey.entry, limits
  WHERE id = $1::bytea AND fence = $2::bytea AND state = 'in_progress'
  FOR NO KEY UPDATE OF entry
),
opened AS (
  INSERT INTO oncekey.intent AS i (
    entry_id, call, generation, derived_key, request_digest, fence, form, started_at, settles_at
  )
  SELECT
    id, $3::text, $4::int, $5::text, $6::bytea, $2::bytea, $8::text, clock_timestamp(),
    clock_timestamp() + $9::float8 * interval '1 millisecond'
  FROM fenced
  ON CONFLICT (entry_id, call, generation)
    DO UPDATE SET started_at = excluded.started_at, settles_at = excluded.settles_at, fence = excluded.fence
    WHERE i.state = 'open'
  RETURNING call, generation, derived_key, request_digest, state, form, started_at, settles_at
)
SELECT
  call, generation, derived_key, request_digest, state, form,
  (extract(epoch FROM clock_timestamp() - started_at) * 1000)::float8 AS age_ms,
  (extract(epoch FROM settles_at - clock_timestamp()) * 1000)::float8 AS settles_in_ms
FROM opened;
