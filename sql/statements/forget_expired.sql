-- Removes an entry whose retention is over and whose tombstone, if it has one, no longer stands.
WITH expired AS MATERIALIZED (
  SELECT id FROM oncekey.entry
  WHERE id = $1::bytea
    AND expires_at <= statement_timestamp()
    AND (tombstone_until IS NULL OR tombstone_until <= statement_timestamp())
  FOR UPDATE
),
phases AS (DELETE FROM oncekey.phase WHERE entry_id IN (SELECT id FROM expired)),
intents AS (DELETE FROM oncekey.intent WHERE entry_id IN (SELECT id FROM expired))
DELETE FROM oncekey.entry WHERE id IN (SELECT id FROM expired)
RETURNING true AS matched;
