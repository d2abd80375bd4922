-- Erases what the finished entries of a selection hold, in one window of ids: identity and fingerprint stay, so that a
-- retry is refused and never runs. Counts what is left: entries that are not finished, and rows that somebody else holds
-- at the moment. The key is kept as a digest, in the form of core/key.ts. Without $9 nothing is changed.
WITH looked AS MATERIALIZED (
  SELECT id, tenant, client, operation, key, state
  FROM oncekey.entry
  WHERE id > $1::bytea
  ORDER BY id
  LIMIT $2::int
),
selected AS MATERIALIZED (
  SELECT id, state
  FROM looked
  WHERE tenant = $3::text
    AND ($4::boolean OR client IS NOT DISTINCT FROM $5::text)
    AND ($6::text IS NULL OR operation = $6::text)
    AND ($7::text IS NULL OR key IN (SELECT value FROM jsonb_array_elements_text($7::text::jsonb)))
),
holding AS MATERIALIZED (
  SELECT e.id
  FROM oncekey.entry AS e, selected AS s
  WHERE e.id = s.id
    AND s.state IN ('succeeded', 'failed')
    AND (
      NOT e.outcome_gone
      OR e.input IS NOT NULL
      OR e.context IS NOT NULL
      OR e.correlation IS NOT NULL
      OR position('…sha256:' IN e.key) = 0
      OR e.expires_at + $8::float8 * interval '1 millisecond' > coalesce(e.tombstone_until, e.expires_at)
      OR EXISTS (SELECT FROM oncekey.phase AS p WHERE p.entry_id = e.id)
      OR EXISTS (SELECT FROM oncekey.intent AS i WHERE i.entry_id = e.id)
    )
),
free AS MATERIALIZED (
  SELECT e.id, e.body_pointer
  FROM oncekey.entry AS e, holding AS h
  WHERE $9::boolean AND e.id = h.id AND e.state IN ('succeeded', 'failed')
  FOR UPDATE OF e SKIP LOCKED
),
phases AS (DELETE FROM oncekey.phase AS p USING free WHERE p.entry_id = free.id),
intents AS (DELETE FROM oncekey.intent AS i USING free WHERE i.entry_id = free.id),
loose AS (
  INSERT INTO oncekey.body (pointer, entry_id, check_at)
  SELECT body_pointer, id, statement_timestamp() FROM free WHERE body_pointer IS NOT NULL
  ON CONFLICT (pointer) DO UPDATE SET check_at = excluded.check_at
),
erased AS (
  UPDATE oncekey.entry AS e
  SET
    outcome = NULL,
    outcome_gone = true,
    body_pointer = NULL,
    input = NULL,
    context = NULL,
    correlation = NULL,
    key =
      CASE
        WHEN position('…sha256:' IN e.key) > 0 THEN e.key
        ELSE
          left(e.key, least(6, char_length(e.key) / 2))
          || '…sha256:' || encode(sha256(convert_to(e.key, 'UTF8')), 'hex')
      END,
    tombstone_until =
      CASE
        WHEN $8::float8 > 0 THEN greatest(e.tombstone_until, e.expires_at + $8::float8 * interval '1 millisecond')
        ELSE e.tombstone_until
      END
  FROM free
  WHERE e.id = free.id
  RETURNING free.body_pointer
)
SELECT
  (SELECT id FROM looked ORDER BY id DESC LIMIT 1) AS last,
  (SELECT count(*) FROM selected)::int AS selected,
  (SELECT count(*) FROM holding)::int AS holding,
  (SELECT count(*) FROM erased)::int AS erased,
  (SELECT count(body_pointer) FROM erased)::int AS bodies,
  (SELECT count(e.body_pointer) FROM oncekey.entry AS e, holding AS h WHERE e.id = h.id)::int AS held_bodies,
  (SELECT count(*) FROM selected WHERE state = 'in_progress')::int AS in_progress,
  (SELECT count(*) FROM selected WHERE state = 'needs_recovery')::int AS needs_recovery,
  (SELECT count(*) FROM selected WHERE state = 'released')::int AS released,
  (
    SELECT coalesce(string_agg(encode(unfinished.id, 'hex'), ' '), '')
    FROM (SELECT id FROM selected WHERE state IN ('needs_recovery', 'released') ORDER BY id LIMIT 10) AS unfinished
  ) AS unfinished_ids;
