-- Bodies whose time to be looked at has come, each put off so that another sweeper leaves them alone meanwhile. Whether an
-- entry points at them is asked afterwards: the rows are locked as they are now, but this statement would see entries as
-- they were when it began, and a purge that commits in between would be missed for ever.
WITH due AS MATERIALIZED (
  SELECT pointer FROM oncekey.body
  WHERE check_at <= statement_timestamp()
  ORDER BY check_at
  LIMIT $1::int
  FOR UPDATE SKIP LOCKED
)
UPDATE oncekey.body AS b
SET check_at = clock_timestamp() + $2::float8 * interval '1 millisecond'
FROM due
WHERE b.pointer = due.pointer
-- The time itself, exact: it tells later whether the row is still as it was left here.
RETURNING b.pointer, extract(epoch FROM b.check_at)::text AS mark;
