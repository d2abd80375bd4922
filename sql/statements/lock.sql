-- The first statement of a transaction run: limits for this transaction only, then two try-locks, the second only if
-- the first was gained; CASE forces the order. Both: owner. Not the first: an exact duplicate runs. The first only:
-- another payload runs. Only the owner is given a transaction id, a loser writes nothing.
WITH limits AS MATERIALIZED (
  SELECT
    set_config('lock_timeout', $3::text, true) AS lock_timeout,
    set_config('idle_in_transaction_session_timeout', $4::text, true) AS idle_timeout,
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
),
locks AS MATERIALIZED (
  SELECT
    CASE
      WHEN pg_try_advisory_xact_lock($1::bigint) THEN
        CASE WHEN pg_try_advisory_xact_lock($2::bigint) THEN 'owner' ELSE 'mismatch' END
      ELSE 'busy'
    END AS result
  FROM limits
)
SELECT result, CASE result WHEN 'owner' THEN pg_current_xact_id()::text END AS xact FROM locks;
