-- Records a phase and moves the recovery point, in the transaction of the phase's effect. The record is inserted only
-- from the fenced update, and only in the transaction that the phase began with.
WITH session AS MATERIALIZED (
  SELECT $7::text IS NULL OR pg_current_xact_id()::text = $7::text AS same
),
fenced AS (
  UPDATE oncekey.entry
  SET recovery_point = $5::text
  FROM session
  WHERE session.same AND id = $1::bytea AND fence = $2::bytea AND state = 'in_progress'
  RETURNING id
),
recorded AS (
  INSERT INTO oncekey.phase (entry_id, position, kind, name, value)
  SELECT id, $3::int, $4::text, $5::text, $6::bytea FROM fenced
  RETURNING position
)
SELECT session.same, EXISTS (SELECT FROM recorded) AS matched FROM session;
