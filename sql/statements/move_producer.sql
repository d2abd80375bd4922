-- Moves a producer on, in the transaction of the effect: a compare-and-set on the number last seen, none for its first.
WITH session AS MATERIALIZED (
  SELECT $9::text IS NULL OR pg_current_xact_id()::text = $9::text AS same
),
begun AS (
  INSERT INTO oncekey.producer (id, tenant, source, producer, epoch, sequence, moved_at)
  SELECT $1::bytea, $2::text, $3::text, $4::text, $7::bigint, $8::bigint, clock_timestamp()
  FROM session
  WHERE session.same AND $5::bigint IS NULL
  ON CONFLICT (id) DO NOTHING
  RETURNING id
),
moved AS (
  UPDATE oncekey.producer AS p
  SET epoch = $7::bigint, sequence = $8::bigint, moved_at = clock_timestamp()
  FROM session
  WHERE session.same AND p.id = $1::bytea AND p.epoch = $5::bigint AND p.sequence = $6::bigint
  RETURNING p.id
)
SELECT session.same, EXISTS (SELECT FROM begun) OR EXISTS (SELECT FROM moved) AS matched FROM session;
