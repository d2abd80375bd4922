-- One batch of messages that were delivered long enough ago.
WITH due AS MATERIALIZED (
  SELECT id FROM oncekey.outbox
  WHERE state = 'delivered' AND delivered_at <= statement_timestamp() - $2::float8 * interval '1 millisecond'
  ORDER BY delivered_at
  LIMIT $1::int
  FOR UPDATE SKIP LOCKED
),
deleted AS (DELETE FROM oncekey.outbox AS o USING due WHERE o.id = due.id RETURNING o.id)
SELECT count(*)::int AS purged FROM deleted;
