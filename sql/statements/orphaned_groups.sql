-- For operators: what is due and in no row that a sweeper has announced within the last minute: left by code that is no
-- longer deployed, or not yet, or whose worker does not run.
SELECT
  operation, run_kind, operation_version,
  count(*)::text AS entries,
  (extract(epoch FROM clock_timestamp() - min(created_at)) * 1000)::float8 AS oldest_ms
FROM (
  SELECT operation, run_kind, operation_version, created_at
  FROM oncekey.entry
  WHERE state = 'in_progress' AND lease_until <= statement_timestamp()
  UNION ALL
  SELECT operation, run_kind, operation_version, created_at
  FROM oncekey.entry
  WHERE sweep_at <= statement_timestamp() AND state IN ('needs_recovery', 'released')
) AS due
WHERE NOT EXISTS (
  SELECT FROM oncekey.sweep_target AS t
  WHERE t.operation = due.operation
    AND t.run_kind = due.run_kind
    AND t.operation_version >= due.operation_version
    AND t.seen_at > statement_timestamp() - interval '1 minute'
)
GROUP BY operation, run_kind, operation_version
ORDER BY count(*) DESC, operation, run_kind, operation_version
LIMIT 100;
