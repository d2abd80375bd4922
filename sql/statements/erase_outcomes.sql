-- erase_entries.sql for outcomes in partitions. What is erased goes back to the table of entries, as a tombstone: partitions
-- hold nothing that changes. What had expired is deleted. Without $9 nothing is changed.
WITH looked AS MATERIALIZED (
  SELECT id, tenant, client, operation, key
  FROM oncekey.outcome
  WHERE id > $1::bytea
  ORDER BY id
  LIMIT $2::int
),
selected AS MATERIALIZED (
  SELECT DISTINCT id
  FROM looked
  WHERE tenant = $3::text
    AND ($4::boolean OR client IS NOT DISTINCT FROM $5::text)
    AND ($6::text IS NULL OR operation = $6::text)
    AND ($7::text IS NULL OR key IN (SELECT value FROM jsonb_array_elements_text($7::text::jsonb)))
),
gone AS (
  DELETE FROM oncekey.outcome AS o USING selected AS s WHERE $9::boolean AND o.id = s.id RETURNING o.*
),
erased AS (
  INSERT INTO oncekey.entry (
    created_at, completed_at, expires_at, tombstone_until, attempt, operation_version, status, outcome_gone, id, fence, seed,
    fingerprint, wire_digest, state, run_kind, tenant, client, operation, key, recovery_point, reason
  )
  SELECT
    created_at, completed_at, expires_at,
    CASE WHEN $8::float8 > 0 THEN expires_at + $8::float8 * interval '1 millisecond' END,
    attempt, operation_version, status, true, id, fence, seed, fingerprint, wire_digest, state, run_kind, tenant, client,
    operation,
    CASE
      WHEN position('…sha256:' IN key) > 0 THEN key
      ELSE left(key, least(6, char_length(key) / 2)) || '…sha256:' || encode(sha256(convert_to(key, 'UTF8')), 'hex')
    END,
    recovery_point, reason
  FROM gone
  WHERE expires_at > statement_timestamp()
)
SELECT
  (SELECT id FROM looked ORDER BY id DESC LIMIT 1) AS last,
  (SELECT count(*) FROM selected)::int AS selected,
  (SELECT count(*) FROM selected)::int AS holding,
  (SELECT count(DISTINCT id) FROM gone)::int AS erased;
