-- Removes an entry whose retention is over and whose tombstone, if it has one, no longer stands or is that of a failure
-- (which is only asked for where failures are forgotten).
WITH expired AS MATERIALIZED (
  SELECT id, body_pointer FROM oncekey.entry
  WHERE id = $1::bytea
    AND expires_at <= statement_timestamp()
    AND (state = 'failed' OR tombstone_until IS NULL OR tombstone_until <= statement_timestamp())
  FOR UPDATE
),
loose AS (
  INSERT INTO oncekey.body (pointer, entry_id, check_at)
  SELECT body_pointer, id, statement_timestamp() FROM expired WHERE body_pointer IS NOT NULL
  ON CONFLICT (pointer) DO UPDATE SET check_at = excluded.check_at
),
phases AS (DELETE FROM oncekey.phase WHERE entry_id IN (SELECT id FROM expired)),
intents AS (DELETE FROM oncekey.intent WHERE entry_id IN (SELECT id FROM expired))
DELETE FROM oncekey.entry WHERE id IN (SELECT id FROM expired)
RETURNING true AS matched;
