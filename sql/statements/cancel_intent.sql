-- Commits that a generation of a call can never land any more. Fenced by a lock on the entry's row. A settled one stays.
WITH limits AS MATERIALIZED (
  SELECT
    set_config('lock_timeout', $5::text, true) AS lock_timeout,
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
),
fenced AS MATERIALIZED (
  SELECT id FROM oncekey.entry, limits
  WHERE id = $1::bytea AND fence = $2::bytea AND state = 'in_progress'
  FOR NO KEY UPDATE OF entry
),
cancelled AS (
  UPDATE oncekey.intent SET state = 'cancelled'
  WHERE entry_id IN (SELECT id FROM fenced) AND call = $3::text AND generation = $4::int AND state <> 'settled'
  RETURNING generation
)
SELECT EXISTS (SELECT FROM cancelled) AS matched;
