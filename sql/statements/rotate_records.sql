-- One window of recorded values, as rotate_entries.sql. Those of an entry whose owner may be at work are left alone: an
-- answer that was lost makes it send a record again, and it must meet the bytes that it sent.
WITH looked AS MATERIALIZED (
  SELECT
    entry_id, position,
    octet_length(value) AS value_bytes,
    substr(value, 1, 2) <> $4::bytea
      AND (substr(value, 1, 1) = '\x81'::bytea OR ($5::boolean AND substr(value, 1, 1) < '\x80'::bytea))
      AND NOT EXISTS (
        SELECT FROM oncekey.entry AS e
        WHERE e.id = p.entry_id AND e.state = 'in_progress' AND e.lease_until > statement_timestamp()
      ) AS due
  FROM oncekey.phase AS p
  WHERE (entry_id, position) > ($1::bytea, $2::int)
  ORDER BY entry_id, position
  LIMIT $3::int
),
sized AS MATERIALIZED (
  SELECT
    entry_id, position, due,
    sum(CASE WHEN due THEN value_bytes ELSE 0 END) OVER (ORDER BY entry_id, position) AS total,
    row_number() OVER (ORDER BY entry_id, position) AS place
  FROM looked
)
SELECT p.entry_id, p.position, CASE WHEN s.due THEN p.value END AS value
FROM sized AS s
JOIN oncekey.phase AS p ON p.entry_id = s.entry_id AND p.position = s.position
WHERE s.place = 1 OR s.total <= $6::float8
ORDER BY p.entry_id, p.position;
