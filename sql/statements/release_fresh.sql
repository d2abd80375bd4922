-- Gives a first claim back for which nothing is recorded: as if it had never been. Records cannot be lost by a race: the
-- locked row tells of phases, calls and recoveries, and the foreign keys refuse to delete an entry that has any.
WITH limits AS MATERIALIZED (
  SELECT
    set_config('lock_timeout', $3::text, true) AS lock_timeout,
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
)
DELETE FROM oncekey.entry AS e
USING limits
WHERE e.id = $1::bytea AND e.fence = $2::bytea AND e.state = 'in_progress'
  AND e.attempt = 1
  AND e.recovery_point IS NULL
  AND e.reason IS NULL
  AND NOT EXISTS (SELECT FROM oncekey.phase AS p WHERE p.entry_id = e.id)
  AND NOT EXISTS (SELECT FROM oncekey.intent AS i WHERE i.entry_id = e.id)
RETURNING true AS matched;
