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
    completed_at = clock_timestamp(),
    expires_at = clock_timestamp() + $7::float8 * interval '1 millisecond',
    tombstone_until =
      CASE WHEN $8::float8 > 0 THEN clock_timestamp() + ($7::float8 + $8::float8) * interval '1 millisecond' END
  FROM session
  WHERE session.same AND id = $1::bytea AND fence = $2::bytea AND state IN ('in_progress', 'needs_recovery')
  RETURNING id
)
SELECT session.same, EXISTS (SELECT FROM fenced) AS matched FROM session;
