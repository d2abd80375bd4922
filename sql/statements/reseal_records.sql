-- As reseal_entries.sql, for recorded values.
WITH given AS MATERIALIZED (
  SELECT
    decode(entry_id, 'hex') AS given_id, position AS place,
    decode(value_was, 'base64') AS old_value, decode(value, 'base64') AS new_value
  FROM jsonb_to_recordset($1::text::jsonb) AS sent(entry_id text, position int, value_was text, value text)
),
free AS MATERIALIZED (
  SELECT p.entry_id, p.position
  FROM oncekey.phase AS p, given AS g
  WHERE p.entry_id = g.given_id AND p.position = g.place AND sha256(p.value) = g.old_value
  FOR UPDATE OF p SKIP LOCKED
),
resealed AS (
  UPDATE oncekey.phase AS p SET value = g.new_value
  FROM free, given AS g
  WHERE p.entry_id = free.entry_id
    AND p.position = free.position
    AND g.given_id = free.entry_id
    AND g.place = free.position
  RETURNING 1 AS taken
)
SELECT coalesce(sum(taken), 0)::int AS resealed FROM resealed;
