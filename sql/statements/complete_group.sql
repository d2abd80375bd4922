-- complete.sql for several entries in one synchronous commit, outside of any transaction. Rows are taken in the order of id
-- and without waiting: a member whose place is not returned met no row, or one that somebody else holds, and is to ask
-- alone. Of two members with one id only the first can be met.
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
    FOR NO KEY UPDATE SKIP LOCKED
  ) AS owned
)
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
  -- The clock is read once a row, as in complete.sql.
  (completed_at, expires_at, tombstone_until) = (
    SELECT
      clock.at,
      clock.at + retention_ms * interval '1 millisecond',
      CASE WHEN tombstone_ms > 0 THEN clock.at + (retention_ms + tombstone_ms) * interval '1 millisecond' END
    FROM (SELECT clock_timestamp() AS at WHERE entry.id IS NOT NULL OFFSET 0) AS clock
  )
FROM held
WHERE id = given_id AND fence = given_fence AND state IN ('in_progress', 'needs_recovery')
RETURNING place;
