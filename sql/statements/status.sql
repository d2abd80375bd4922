-- For operators: entries by state, the oldest in progress, what waits to be purged, sizes. Reads the whole tables.
SELECT
  state,
  count(*)::text AS entries,
  (extract(epoch FROM clock_timestamp() - min(created_at)) * 1000)::float8 AS oldest_age_ms,
  (count(*) FILTER (WHERE lease_until <= statement_timestamp()))::text AS lapsed,
  (count(*) FILTER (WHERE purge_at <= statement_timestamp()))::text AS expired
FROM (
  SELECT state, created_at, lease_until, expires_at AS purge_at FROM oncekey.entry
  UNION ALL
  -- A partition is dropped whole: what has expired in it is nothing that waits for the purge, and nobody's entry any more.
  SELECT state, created_at, lease_until, NULL FROM oncekey.outcome WHERE expires_at > statement_timestamp()
) AS either
GROUP BY state;
