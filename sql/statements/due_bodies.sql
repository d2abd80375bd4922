-- Bodies whose time to be looked at has come, each put off so that another sweeper leaves them alone meanwhile.
WITH due AS MATERIALIZED (
  SELECT pointer FROM oncekey.body
  WHERE check_at <= statement_timestamp()
  ORDER BY check_at
  LIMIT $1::int
  FOR UPDATE SKIP LOCKED
),
put_off AS (
  UPDATE oncekey.body AS b
  SET check_at = clock_timestamp() + $2::float8 * interval '1 millisecond'
  FROM due
  WHERE b.pointer = due.pointer
  RETURNING b.pointer, b.entry_id
)
SELECT
  put_off.pointer,
  EXISTS (SELECT FROM oncekey.entry AS e WHERE e.id = put_off.entry_id AND e.body_pointer = put_off.pointer) AS in_use
FROM put_off;
