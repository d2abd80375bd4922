-- For the console: which operations sweepers have said lately that they take up, the migrations, and the layout.
SELECT
  'sweeper' AS kind, operation AS name, run_kind, operation_version AS number, (extract(epoch FROM seen_at) * 1000)::float8 AS at
FROM oncekey.sweep_target
UNION ALL
SELECT 'migration', name, NULL, number, (extract(epoch FROM applied_at) * 1000)::float8 FROM oncekey.migration
UNION ALL
SELECT 'layout', name, NULL, 0, NULL FROM oncekey.layout
ORDER BY kind, name, number;
