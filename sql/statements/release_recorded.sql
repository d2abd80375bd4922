-- Gives a claim back and keeps what is known: row, fingerprint, records and intents. The next claim is a resume: a
-- retry's, or at once the sweeper's where an operator gave a run back that needs no client.
WITH limits AS MATERIALIZED (
  SELECT
    set_config('lock_timeout', $3::text, true) AS lock_timeout,
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
)
UPDATE oncekey.entry
SET
  state = 'released',
  lease_until = NULL,
  not_before = NULL,
  sweep_at = CASE WHEN $4::boolean AND run_kind = 'phases' THEN clock_timestamp() END,
  -- An owner gives back at its end. An operator who insisted proved nothing: what was on its way still is.
  settles_at = clock_timestamp() + $5::float8 * interval '1 millisecond'
FROM limits
WHERE id = $1::bytea AND fence = $2::bytea AND state IN ('in_progress', 'needs_recovery')
RETURNING true AS matched;
