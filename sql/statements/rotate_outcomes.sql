-- rotate_entries.sql for outcomes in partitions. What has expired there is not sealed anew: it goes with its partition.
WITH looked AS MATERIALIZED (
  SELECT
    id,
    octet_length(input) AS input_bytes,
    octet_length(context) AS context_bytes,
    octet_length(outcome) AS outcome_bytes,
    substr(input, 1, 2) <> $3::bytea
      AND (substr(input, 1, 1) = '\x81'::bytea OR ($4::boolean AND substr(input, 1, 1) < '\x80'::bytea)) AS input_due,
    substr(context, 1, 2) <> $3::bytea
      AND (substr(context, 1, 1) = '\x81'::bytea OR ($4::boolean AND substr(context, 1, 1) < '\x80'::bytea)) AS context_due,
    substr(outcome, 1, 2) <> $3::bytea
      AND (substr(outcome, 1, 1) = '\x81'::bytea OR ($4::boolean AND substr(outcome, 1, 1) < '\x80'::bytea)) AS outcome_due
  FROM oncekey.outcome
  WHERE id > $1::bytea AND expires_at > statement_timestamp()
  ORDER BY id
  LIMIT $2::int
),
sized AS MATERIALIZED (
  SELECT
    id, input_due, context_due, outcome_due,
    sum(
      CASE WHEN input_due THEN input_bytes ELSE 0 END
      + CASE WHEN context_due THEN context_bytes ELSE 0 END
      + CASE WHEN outcome_due THEN outcome_bytes ELSE 0 END
    ) OVER (ORDER BY id) AS total,
    row_number() OVER (ORDER BY id) AS place
  FROM looked
)
SELECT
  e.id,
  e.tenant,
  CASE WHEN s.input_due THEN e.input END AS input,
  CASE WHEN s.context_due THEN e.context END AS context,
  CASE WHEN s.outcome_due THEN e.outcome END AS outcome
FROM sized AS s
JOIN oncekey.outcome AS e ON e.id = s.id AND e.expires_at > statement_timestamp()
WHERE s.place = 1 OR s.total <= $5::float8
ORDER BY e.id;
