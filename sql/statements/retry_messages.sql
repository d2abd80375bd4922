-- For operators: makes undelivered messages due at once, with all their attempts before them; by their ids, or all dead
-- letters of a topic. One that a relay holds is left to it.
WITH chosen AS MATERIALIZED (
  SELECT o.id FROM oncekey.outbox AS o
  WHERE o.state = 'dead' AND $1::text IS NULL
    AND CASE WHEN right($2::text, 1) = '*' THEN starts_with(o.topic, left($2::text, -1)) ELSE o.topic = $2::text END
  UNION ALL
  SELECT o.id FROM oncekey.outbox AS o
  WHERE o.id IN (SELECT value FROM jsonb_array_elements_text($1::text::jsonb))
),
retried AS (
  UPDATE oncekey.outbox AS o
  SET state = 'pending', available_at = clock_timestamp(), attempts = 0, fence = NULL
  FROM chosen
  WHERE o.id = chosen.id
    AND (o.state = 'dead' OR (o.state = 'pending' AND (o.fence IS NULL OR o.available_at <= clock_timestamp())))
  RETURNING o.id
)
SELECT count(*)::int AS changed FROM retried;
