-- One window of deliveries, as rotate_entries.sql. A mark of authorship (core/delivery.ts, first byte 0) is never sealed:
-- who wrote it compares its bytes.
WITH looked AS MATERIALIZED (
  SELECT
    id,
    octet_length(value) AS value_bytes,
    substr(value, 1, 2) <> $3::bytea
      AND (
        substr(value, 1, 1) = '\x81'::bytea
        OR ($4::boolean AND substr(value, 1, 1) > '\x00'::bytea AND substr(value, 1, 1) < '\x80'::bytea)
      ) AS due
  FROM oncekey.inbox
  WHERE id > $1::bytea
  ORDER BY id
  LIMIT $2::int
),
sized AS MATERIALIZED (
  SELECT
    id, due,
    sum(CASE WHEN due THEN value_bytes ELSE 0 END) OVER (ORDER BY id) AS total,
    row_number() OVER (ORDER BY id) AS place
  FROM looked
)
SELECT i.id, CASE WHEN s.due THEN i.value END AS value
FROM sized AS s
JOIN oncekey.inbox AS i ON i.id = s.id
WHERE s.place = 1 OR s.total <= $5::float8
ORDER BY i.id;
