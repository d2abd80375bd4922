-- The first statement of a transaction that takes arrivals in: limits for this transaction only, then a try-lock for each
-- of them, without waiting. Who gained none is given no transaction id, and writes nothing.
WITH limits AS MATERIALIZED (
  SELECT
    set_config('lock_timeout', $2::text, true) AS lock_timeout,
    set_config('idle_in_transaction_session_timeout', $3::text, true) AS idle_timeout,
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
),
locks AS MATERIALIZED (
  SELECT place, pg_try_advisory_xact_lock(lock_key::bigint) AS gained
  FROM limits, jsonb_array_elements_text($1::text::jsonb) WITH ORDINALITY AS wanted(lock_key, place)
)
SELECT gained, CASE WHEN (SELECT bool_or(gained) FROM locks) THEN pg_current_xact_id()::text END AS xact
FROM locks
ORDER BY place;
