-- Which operations a running sweeper can take up. Written only where the row is older than ten seconds, and looked up
-- first: a conflict locks its row even when nothing is changed. In one order, so that two sweepers never deadlock.
INSERT INTO oncekey.sweep_target AS t (seen_at, operation, run_kind, operation_version)
SELECT clock_timestamp(), g.operation, g.run_kind, g.operation_version
FROM (SELECT DISTINCT * FROM jsonb_to_recordset($1::text::jsonb) AS x(operation text, run_kind text, operation_version int)) AS g
WHERE NOT EXISTS (
  SELECT FROM oncekey.sweep_target AS known
  WHERE known.operation = g.operation
    AND known.run_kind = g.run_kind
    AND known.operation_version = g.operation_version
    AND known.seen_at > statement_timestamp() - interval '10 seconds'
)
ORDER BY g.operation, g.run_kind, g.operation_version
ON CONFLICT (operation, run_kind, operation_version) DO UPDATE SET seen_at = greatest(t.seen_at, excluded.seen_at);
