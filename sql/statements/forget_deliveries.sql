-- Forgets deliveries before their time, in the transaction that remembers what takes their place.
WITH session AS MATERIALIZED (
  SELECT $2::text IS NULL OR pg_current_xact_id()::text = $2::text AS same
),
forgotten AS (
  DELETE FROM oncekey.inbox AS i
  USING session
  WHERE session.same
    AND i.id IN (SELECT decode(digest, 'hex') FROM jsonb_array_elements_text($1::text::jsonb) AS given(digest))
  RETURNING i.id
)
SELECT session.same, (SELECT count(*) FROM forgotten)::int AS forgotten FROM session;
