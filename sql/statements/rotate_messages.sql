-- One window of messages, as rotate_entries.sql. The head of a sealed payload is in the first four characters behind its
-- mark (core/cipher.ts).
WITH looked AS MATERIALIZED (
  SELECT
    id,
    octet_length(context) AS context_bytes,
    octet_length(payload) AS payload_bytes,
    substr(context, 1, 2) <> $3::bytea
      AND (substr(context, 1, 1) = '\x81'::bytea OR ($4::boolean AND substr(context, 1, 1) < '\x80'::bytea)) AS context_due,
    CASE
      WHEN payload ~ '^sealed:[A-Za-z0-9_-]{4}'
        THEN substr(decode(translate(substr(payload, 8, 4), '-_', '+/'), 'base64'), 1, 2) <> $3::bytea
      ELSE $4::boolean AND NOT starts_with(payload, 'sealed:')
    END AS payload_due
  FROM oncekey.outbox
  WHERE id > $1::text
  ORDER BY id
  LIMIT $2::int
),
sized AS MATERIALIZED (
  SELECT
    id, context_due, payload_due,
    sum(
      CASE WHEN context_due THEN context_bytes ELSE 0 END + CASE WHEN payload_due THEN payload_bytes ELSE 0 END
    ) OVER (ORDER BY id) AS total,
    row_number() OVER (ORDER BY id) AS place
  FROM looked
)
SELECT
  o.id,
  o.tenant,
  CASE WHEN s.context_due THEN o.context END AS context,
  CASE WHEN s.payload_due THEN o.payload END AS payload
FROM sized AS s
JOIN oncekey.outbox AS o ON o.id = s.id
WHERE s.place = 1 OR s.total <= $5::float8
ORDER BY o.id;
