-- As reseal_entries.sql, for messages.
WITH given AS MATERIALIZED (
  SELECT
    id AS given_id,
    decode(context_was, 'base64') AS old_context, decode(context, 'base64') AS new_context,
    decode(payload_was, 'base64') AS old_payload, payload AS new_payload
  FROM jsonb_to_recordset($1::text::jsonb) AS sent(
    id text, context_was text, context text, payload_was text, payload text
  )
),
free AS MATERIALIZED (
  SELECT o.id
  FROM oncekey.outbox AS o, given AS g
  WHERE o.id = g.given_id
    AND (g.old_context IS NULL OR sha256(o.context) = g.old_context)
    AND (g.old_payload IS NULL OR sha256(convert_to(o.payload, 'UTF8')) = g.old_payload)
  FOR UPDATE OF o SKIP LOCKED
),
resealed AS (
  UPDATE oncekey.outbox AS o
  SET context = coalesce(g.new_context, o.context), payload = coalesce(g.new_payload, o.payload)
  FROM free, given AS g
  WHERE o.id = free.id AND g.given_id = free.id
  RETURNING num_nonnulls(g.new_context, g.new_payload) AS taken
)
SELECT coalesce(sum(taken), 0)::int AS resealed FROM resealed;
