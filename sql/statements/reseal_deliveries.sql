-- As reseal_entries.sql, for values of deliveries.
WITH given AS MATERIALIZED (
  SELECT
    decode(id, 'hex') AS given_id, decode(value_was, 'base64') AS old_value, decode(value, 'base64') AS new_value
  FROM jsonb_to_recordset($1::text::jsonb) AS sent(id text, value_was text, value text)
),
free AS MATERIALIZED (
  SELECT i.id
  FROM oncekey.inbox AS i, given AS g
  WHERE i.id = g.given_id AND sha256(i.value) = g.old_value
  FOR UPDATE OF i SKIP LOCKED
),
resealed AS (
  UPDATE oncekey.inbox AS i SET value = g.new_value
  FROM free, given AS g
  WHERE i.id = free.id AND g.given_id = free.id
  RETURNING 1 AS taken
)
SELECT coalesce(sum(taken), 0)::int AS resealed FROM resealed;
