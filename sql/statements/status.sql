-- For operators: entries by state, the oldest in progress, what waits to be purged, sizes. Reads the whole tables.
SELECT
  state,
  count(*)::text AS entries,
  (extract(epoch FROM clock_timestamp() - min(created_at)) * 1000)::float8 AS oldest_age_ms,
  (count(*) FILTER (WHERE lease_until <= statement_timestamp()))::text AS lapsed,
  (count(*) FILTER (WHERE expires_at <= statement_timestamp()))::text AS expired
FROM (
  SELECT state, created_at, lease_until, expires_at FROM oncekey.entry
  UNION ALL
  SELECT state, created_at, lease_until, expires_at FROM oncekey.outcome
) AS either
GROUP BY state;
