-- Remembers deliveries, in the transaction of their effect, in place of expired ones. Where another transaction was
-- faster a row is missing from the count, and the whole transaction must be rolled back. In one order, against deadlocks.
WITH session AS MATERIALIZED (
  SELECT $2::text IS NULL OR pg_current_xact_id()::text = $2::text AS same
),
accepted AS (
  INSERT INTO oncekey.inbox AS known (received_at, expires_at, id, tenant, source, delivery, value)
  SELECT
    clock_timestamp(), clock_timestamp() + keep_ms * interval '1 millisecond', decode(digest, 'hex'), tenant, source,
    delivery, decode(value, 'base64')
  FROM session, jsonb_to_recordset($1::text::jsonb) AS given(
    digest text, tenant text, source text, delivery text, value text, keep_ms float8
  )
  WHERE session.same
  ORDER BY digest
  ON CONFLICT (id) DO UPDATE
    SET received_at = excluded.received_at, expires_at = excluded.expires_at, value = excluded.value
    WHERE known.expires_at <= clock_timestamp()
  RETURNING id
)
SELECT session.same, (SELECT count(*) FROM accepted)::int AS accepted FROM session;
