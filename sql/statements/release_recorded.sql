-- Gives a claim back and keeps what is known: row, fingerprint, records and intents. The next claim is a resume.
WITH limits AS MATERIALIZED (
  SELECT
    set_config('lock_timeout', $3::text, true) AS lock_timeout,
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
)
UPDATE oncekey.entry
SET state = 'released', lease_until = NULL, not_before = NULL
FROM limits
WHERE id = $1::bytea AND fence = $2::bytea AND state IN ('in_progress', 'needs_recovery')
RETURNING true AS matched;
