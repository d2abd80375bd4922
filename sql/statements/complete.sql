-- Stores the outcome. Retention counts from here. A slow owner's completion still counts after the entry was marked.
-- With a transaction id it also proves that the transaction is still the one that began.
WITH session AS MATERIALIZED (
  SELECT
    $9::text IS NULL OR pg_current_xact_id()::text = $9::text AS same,
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
),
fenced AS (
  UPDATE oncekey.entry
  SET
    state = $3::text,
    status = $4::int,
    outcome = $5::bytea,
    outcome_gone = $5::bytea IS NULL,
    body_pointer = $6::text,
    lease_until = NULL,
    not_before = NULL,
    sweep_at = NULL,
    settles_at = NULL,
    -- The clock is read once: a failure that was stored to be forgotten is known by its two instants being one. The sub-select
    -- names the row, or it would be read before a wait for that row.
    (completed_at, expires_at, tombstone_until) = (
      SELECT
        clock.at,
        clock.at + $7::float8 * interval '1 millisecond',
        CASE WHEN $8::float8 > 0 THEN clock.at + ($7::float8 + $8::float8) * interval '1 millisecond' END
      FROM (SELECT clock_timestamp() AS at WHERE entry.id IS NOT NULL OFFSET 0) AS clock
    )
  FROM session
  WHERE session.same AND id = $1::bytea AND fence = $2::bytea AND state IN ('in_progress', 'needs_recovery')
  RETURNING id
)
SELECT session.same, EXISTS (SELECT FROM fenced) AS matched FROM session;
