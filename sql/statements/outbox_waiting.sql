-- What waits in the outbox, by topic and state; delivered messages are not read.
SELECT
  topic, state, count(*)::text AS messages,
  (extract(epoch FROM clock_timestamp() - min(created_at)) * 1000)::float8 AS oldest_ms
FROM (
  SELECT topic, state, created_at FROM oncekey.outbox WHERE state = 'pending' AND order_by IS NULL
  UNION ALL
  SELECT topic, state, created_at FROM oncekey.outbox WHERE state = 'pending' AND order_by IS NOT NULL
  UNION ALL
  SELECT topic, state, created_at FROM oncekey.outbox WHERE state = 'dead'
) AS undelivered
GROUP BY topic, state
ORDER BY topic, state;
