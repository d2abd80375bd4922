-- complete_group.sql in the partitioned layout: each member goes where complete_apart.sql would put it.
WITH session AS MATERIALIZED (
  SELECT
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
),
given AS MATERIALIZED (
  SELECT DISTINCT ON (decode(id_hex, 'hex'))
    decode(id_hex, 'hex') AS given_id, place, decode(fence_hex, 'hex') AS given_fence, given_state, given_status,
    decode(content_hex, 'hex') AS given_content, given_pointer, retention_ms, tombstone_ms
  FROM session, json_to_recordset($1::text::json) AS member(
    place int, id_hex text, fence_hex text, given_state text, given_status int, content_hex text, given_pointer text,
    retention_ms float8, tombstone_ms float8
  )
  ORDER BY decode(id_hex, 'hex'), place
),
held AS MATERIALIZED (
  SELECT given.*
  FROM given
  CROSS JOIN LATERAL (
    SELECT
    FROM oncekey.entry
    WHERE id = given_id AND fence = given_fence AND state IN ('in_progress', 'needs_recovery')
    FOR UPDATE SKIP LOCKED
  ) AS owned
),
ended AS MATERIALIZED (
  SELECT clock.*, at AS ended_at, at + retention_ms * interval '1 millisecond' AS kept_until
  FROM (SELECT held.*, clock_timestamp() AS at FROM held OFFSET 0) AS clock
),
placed AS MATERIALIZED (
  SELECT
    ended.*,
    given_pointer IS NULL AND retention_ms > 0 AND tombstone_ms <= 0
      AND NOT EXISTS (SELECT FROM oncekey.phase AS p WHERE p.entry_id = given_id)
      AND NOT EXISTS (SELECT FROM oncekey.intent AS i WHERE i.entry_id = given_id)
      AND EXISTS (
        SELECT FROM oncekey.layout AS l, oncekey.outcome_partition AS p
        WHERE l.name = 'partitioned' AND p.from_at <= kept_until AND p.to_at > kept_until
      ) AS apart
  FROM ended
),
gone AS (
  DELETE FROM oncekey.entry AS e USING placed WHERE e.id = placed.given_id AND placed.apart
  RETURNING
    e.*, placed.place, placed.given_state, placed.given_status, placed.given_content, placed.ended_at, placed.kept_until
),
moved AS (
  INSERT INTO oncekey.outcome (
    created_at, not_before, completed_at, expires_at, attempt, operation_version, status, outcome_gone, id, fence, seed,
    fingerprint, wire_digest, state, run_kind, tenant, client, operation, key, recovery_point, reason, input, context,
    outcome, correlation
  )
  SELECT
    created_at, NULL, ended_at, kept_until, attempt, operation_version, given_status, given_content IS NULL, id, fence, seed,
    fingerprint, wire_digest, given_state, run_kind, tenant, client, operation, key, recovery_point, reason, input, context,
    given_content, correlation
  FROM gone
  ORDER BY id
),
kept AS (
  UPDATE oncekey.entry
  SET
    state = given_state,
    status = given_status,
    outcome = given_content,
    outcome_gone = given_content IS NULL,
    body_pointer = given_pointer,
    lease_until = NULL,
    not_before = NULL,
    sweep_at = NULL,
    settles_at = NULL,
    completed_at = ended_at,
    expires_at = kept_until,
    tombstone_until = CASE WHEN tombstone_ms > 0 THEN kept_until + tombstone_ms * interval '1 millisecond' END
  FROM placed
  WHERE id = given_id AND NOT apart
  RETURNING place
)
SELECT place FROM gone UNION ALL SELECT place FROM kept;
