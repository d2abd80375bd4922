-- The first statement of a run inside a transaction that the caller opened: its conditions, then the two try-locks of
-- lock.sql, with none of its limits, which would outlast the run. A transaction with an id has written, or has run
-- another key: waiting for somebody while it holds rows could be a deadlock. A loser is given no id.
WITH conditions AS MATERIALIZED (
  SELECT
    CASE
      WHEN current_setting('transaction_read_only') = 'on' THEN 'read_only'
      WHEN $3::boolean THEN NULL
      WHEN pg_current_xact_id_if_assigned() IS NOT NULL THEN 'late'
    END AS refusal
),
locks AS MATERIALIZED (
  SELECT
    CASE
      WHEN refusal IS NOT NULL THEN refusal
      WHEN pg_try_advisory_xact_lock($1::bigint) THEN
        CASE WHEN pg_try_advisory_xact_lock($2::bigint) THEN 'owner' ELSE 'mismatch' END
      ELSE 'busy'
    END AS result
  FROM conditions
)
SELECT result, CASE result WHEN 'owner' THEN pg_current_xact_id()::text END AS xact FROM locks;
