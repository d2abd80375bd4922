-- For operators: deletes undelivered messages, by their ids, or all dead letters of a topic. One that a relay holds is
-- left to it.
WITH chosen AS MATERIALIZED (
  SELECT o.id FROM oncekey.outbox AS o
  WHERE o.state = 'dead' AND $1::text IS NULL
    AND CASE WHEN right($2::text, 1) = '*' THEN starts_with(o.topic, left($2::text, -1)) ELSE o.topic = $2::text END
  UNION ALL
  SELECT o.id FROM oncekey.outbox AS o
  WHERE o.id IN (SELECT value FROM jsonb_array_elements_text($1::text::jsonb))
),
discarded AS (
  DELETE FROM oncekey.outbox AS o
  USING chosen
  WHERE o.id = chosen.id
    AND (o.state = 'dead' OR (o.state = 'pending' AND (o.fence IS NULL OR o.available_at <= clock_timestamp())))
  RETURNING o.id
)
SELECT count(*)::int AS changed FROM discarded;
