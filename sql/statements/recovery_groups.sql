-- For operators: entries whose outcome nobody knows, by operation and reason, with the ids of the three oldest. Reads
-- the whole table of entries.
SELECT
  operation, reason,
  count(*)::text AS entries,
  (extract(epoch FROM clock_timestamp() - min(created_at)) * 1000)::float8 AS oldest_ms,
  (extract(epoch FROM min(sweep_at) - clock_timestamp()) * 1000)::float8 AS sweep_in_ms,
  string_agg(encode(id, 'hex'), ' ' ORDER BY created_at, id) FILTER (WHERE place <= 3) AS ids
FROM (
  SELECT
    operation, reason, created_at, sweep_at, id,
    row_number() OVER (PARTITION BY operation, reason ORDER BY created_at, id) AS place
  FROM oncekey.entry
  WHERE state = 'needs_recovery'
) AS placed
GROUP BY operation, reason
ORDER BY count(*) DESC, operation, reason
LIMIT 100;
