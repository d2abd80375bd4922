-- One batch of entries whose retention is over: deleted with their records, or turned into tombstones, which keep
-- identity and fingerprint only. Rows that somebody else holds are left to the next batch.
WITH due AS MATERIALIZED (
  SELECT id, body_pointer, coalesce(tombstone_until > statement_timestamp(), false) AS stays
  FROM oncekey.entry
  WHERE expires_at IS NOT NULL
    AND (CASE WHEN outcome_gone THEN greatest(expires_at, tombstone_until) ELSE expires_at END) <= statement_timestamp()
  ORDER BY (CASE WHEN outcome_gone THEN greatest(expires_at, tombstone_until) ELSE expires_at END)
  LIMIT $1::int
  FOR UPDATE SKIP LOCKED
),
phases AS (DELETE FROM oncekey.phase AS p USING due WHERE p.entry_id = due.id),
intents AS (DELETE FROM oncekey.intent AS i USING due WHERE i.entry_id = due.id),
loose AS (
  INSERT INTO oncekey.body (pointer, entry_id, check_at)
  SELECT body_pointer, id, statement_timestamp() FROM due WHERE body_pointer IS NOT NULL
  ON CONFLICT (pointer) DO UPDATE SET check_at = excluded.check_at
),
deleted AS (
  DELETE FROM oncekey.entry AS e USING due WHERE e.id = due.id AND NOT due.stays RETURNING e.id
),
emptied AS (
  UPDATE oncekey.entry AS e
  SET outcome = NULL, outcome_gone = true, body_pointer = NULL, input = NULL, context = NULL, correlation = NULL
  FROM due
  WHERE e.id = due.id AND due.stays
  RETURNING e.id
)
SELECT ((SELECT count(*) FROM deleted) + (SELECT count(*) FROM emptied))::int AS purged;
