-- One batch of deliveries that need not be remembered any more. Rows that somebody else holds are left to the next batch.
WITH due AS MATERIALIZED (
  SELECT id FROM oncekey.inbox
  WHERE expires_at <= statement_timestamp()
  ORDER BY expires_at
  LIMIT $1::int
  FOR UPDATE SKIP LOCKED
),
deleted AS (DELETE FROM oncekey.inbox AS i USING due WHERE i.id = due.id RETURNING i.id)
SELECT count(*)::int AS purged FROM deleted;
