-- complete.sql in the partitioned layout: the entry goes to the partition of its end, as insert_finished_apart.sql has it, and
-- stays where it is where something was recorded for it. The row is locked before the clock is read.
WITH session AS MATERIALIZED (
  SELECT
    $9::text IS NULL OR pg_current_xact_id()::text = $9::text AS same,
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
),
held AS MATERIALIZED (
  SELECT e.id AS held_id
  FROM oncekey.entry AS e, session
  WHERE session.same AND e.id = $1::bytea AND e.fence = $2::bytea AND e.state IN ('in_progress', 'needs_recovery')
  FOR UPDATE OF e
),
ended AS MATERIALIZED (
  SELECT held_id, at AS ended_at, at + $7::float8 * interval '1 millisecond' AS kept_until
  FROM (SELECT held_id, clock_timestamp() AS at FROM held OFFSET 0) AS clock
),
place AS MATERIALIZED (
  SELECT
    held_id, ended_at, kept_until,
    $6::text IS NULL AND $7::float8 > 0 AND $8::float8 <= 0
      AND NOT EXISTS (SELECT FROM oncekey.phase AS p WHERE p.entry_id = held_id)
      AND NOT EXISTS (SELECT FROM oncekey.intent AS i WHERE i.entry_id = held_id)
      AND EXISTS (
        SELECT FROM oncekey.layout AS l, oncekey.outcome_partition AS p
        WHERE l.name = 'partitioned' AND p.from_at <= kept_until AND p.to_at > kept_until
      ) AS apart
  FROM ended
),
gone AS (
  DELETE FROM oncekey.entry AS e USING place WHERE e.id = place.held_id AND place.apart
  RETURNING e.*, place.ended_at, place.kept_until
),
moved AS (
  INSERT INTO oncekey.outcome (
    created_at, not_before, completed_at, expires_at, attempt, operation_version, status, outcome_gone, id, fence, seed,
    fingerprint, wire_digest, state, run_kind, tenant, client, operation, key, recovery_point, reason, input, context,
    outcome, correlation
  )
  SELECT
    created_at, NULL, ended_at, kept_until, attempt, operation_version, $4::int, $5::bytea IS NULL, id, fence, seed,
    fingerprint, wire_digest, $3::text, run_kind, tenant, client, operation, key, recovery_point, reason, input, context,
    $5::bytea, correlation
  FROM gone
  RETURNING id
),
kept AS (
  UPDATE oncekey.entry
  SET
    state = $3::text,
    status = $4::int,
    outcome = $5::bytea,
    outcome_gone = $5::bytea IS NULL,
    body_pointer = $6::text,
    lease_until = NULL,
    not_before = NULL,
    sweep_at = NULL,
    settles_at = NULL,
    completed_at = ended_at,
    expires_at = kept_until,
    tombstone_until = CASE WHEN $8::float8 > 0 THEN kept_until + $8::float8 * interval '1 millisecond' END
  FROM place
  WHERE id = held_id AND NOT apart
  RETURNING id
)
SELECT session.same, EXISTS (SELECT FROM moved) OR EXISTS (SELECT FROM kept) AS matched FROM session;
