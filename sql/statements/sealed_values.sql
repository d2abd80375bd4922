-- For operators: how many stored values there are of each kind under each key; null: plain. Reads all tables of values,
-- of each value the first bytes only.
WITH heads AS (
  SELECT v.part, v.head
  FROM (
    SELECT input, context, outcome FROM oncekey.entry
    UNION ALL
    SELECT input, context, outcome FROM oncekey.outcome
  ) AS e
  CROSS JOIN LATERAL (
    VALUES
      ('input', substr(e.input, 1, 2)),
      ('context', substr(e.context, 1, 2)),
      ('outcome', substr(e.outcome, 1, 2))
  ) AS v(part, head)
  WHERE v.head IS NOT NULL
  UNION ALL
  SELECT 'record', substr(value, 1, 2) FROM oncekey.phase
  UNION ALL
  SELECT 'message', substr(context, 1, 2) FROM oncekey.outbox WHERE context IS NOT NULL
  UNION ALL
  SELECT
    'payload',
    CASE
      WHEN payload ~ '^sealed:[A-Za-z0-9_-]{4}'
        THEN substr(decode(translate(substr(payload, 8, 4), '-_', '+/'), 'base64'), 1, 2)
      ELSE '\x01'::bytea
    END
  FROM oncekey.outbox
  UNION ALL
  SELECT 'delivery', substr(value, 1, 2) FROM oncekey.inbox WHERE substr(value, 1, 1) <> '\x00'::bytea
)
SELECT
  part,
  CASE WHEN substr(head, 1, 1) = '\x81'::bytea AND octet_length(head) = 2 THEN get_byte(head, 1) END AS key_id,
  count(*)::text AS held
FROM heads
GROUP BY 1, 2
ORDER BY 1, 2;
