-- Commits a call's result and settles its open intents, fenced. Sent again after a lost answer it meets its own record:
-- 23505 on the phase's key, which proves that the fence matched; the store then compares the two.
WITH limits AS MATERIALIZED (
  SELECT
    set_config('lock_timeout', $7::text, true) AS lock_timeout,
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
),
fenced AS (
  UPDATE oncekey.entry
  SET recovery_point = $5::text
  FROM limits
  WHERE id = $1::bytea AND fence = $2::bytea AND state = 'in_progress'
  RETURNING id
),
settled AS (
  UPDATE oncekey.intent SET state = 'settled'
  WHERE entry_id IN (SELECT id FROM fenced) AND call = $5::text AND state = 'open'
),
recorded AS (
  INSERT INTO oncekey.phase (entry_id, position, kind, name, value)
  SELECT id, $3::int, $4::text, $5::text, $6::bytea FROM fenced
  RETURNING position
)
SELECT EXISTS (SELECT FROM recorded) AS matched;
