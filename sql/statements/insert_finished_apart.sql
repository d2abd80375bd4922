-- insert_finished.sql in the partitioned layout: into the partition of its end, or into the table of entries where there is
-- none, or something outlives the outcome (a tombstone, a body that lies elsewhere) or it is to be forgotten at once.
WITH ended AS MATERIALIZED (
  SELECT statement_timestamp() AS at, statement_timestamp() + $19::float8 * interval '1 millisecond' AS kept_until
  WHERE $21::text IS NULL OR pg_current_xact_id()::text = $21::text
),
place AS MATERIALIZED (
  SELECT
    at, kept_until,
    $18::text IS NULL AND $19::float8 > 0 AND $20::float8 <= 0
      AND EXISTS (
        SELECT FROM oncekey.layout AS l, oncekey.outcome_partition AS p
        WHERE l.name = 'partitioned' AND p.from_at <= kept_until AND p.to_at > kept_until
      ) AS apart
  FROM ended
),
moved AS (
  INSERT INTO oncekey.outcome (
    id, tenant, client, operation, key, run_kind, operation_version, fingerprint, wire_digest, fence, seed, input, context,
    correlation, state, status, outcome, outcome_gone, created_at, completed_at, expires_at
  )
  SELECT
    $1::bytea, $2::text, $3::text, $4::text, $5::text, $6::text, $7::int, $8::bytea, $9::bytea, $10::bytea, $11::bytea,
    $12::bytea, $13::bytea, $14::text, $15::text, $16::int, $17::bytea, $17::bytea IS NULL, at, at, kept_until
  FROM place
  WHERE apart
  RETURNING id
),
kept AS (
  INSERT INTO oncekey.entry (
    id, tenant, client, operation, key, run_kind, operation_version, fingerprint, wire_digest, fence, seed, input, context,
    correlation, state, status, outcome, outcome_gone, body_pointer, created_at, completed_at, expires_at, tombstone_until
  )
  SELECT
    $1::bytea, $2::text, $3::text, $4::text, $5::text, $6::text, $7::int, $8::bytea, $9::bytea, $10::bytea, $11::bytea,
    $12::bytea, $13::bytea, $14::text, $15::text, $16::int, $17::bytea, $17::bytea IS NULL, $18::text, at, at, kept_until,
    CASE WHEN $20::float8 > 0 THEN at + ($19::float8 + $20::float8) * interval '1 millisecond' END
  FROM place
  WHERE NOT apart
  RETURNING id
)
SELECT true AS matched FROM (SELECT id FROM moved UNION ALL SELECT id FROM kept) AS either;
