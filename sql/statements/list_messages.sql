-- For operators: messages in the order of their sending, without payloads and contexts. Reads the outbox.
SELECT
  id, topic, tenant, state, encode(entry_id, 'hex') AS entry_id, attempts, reason, correlation,
  fence IS NOT NULL AND available_at > clock_timestamp() AS leased,
  (extract(epoch FROM clock_timestamp() - created_at) * 1000)::float8 AS age_ms,
  CASE WHEN state = 'pending' THEN (extract(epoch FROM available_at - clock_timestamp()) * 1000)::float8 END AS due_in_ms
FROM oncekey.outbox
WHERE ($1::text IS NULL OR state = $1::text)
  AND (
    $2::text IS NULL
    OR CASE WHEN right($2::text, 1) = '*' THEN starts_with(topic, left($2::text, -1)) ELSE topic = $2::text END
  )
  AND ($3::text IS NULL OR tenant = $3::text)
  AND ($4::bytea IS NULL OR entry_id = $4::bytea)
ORDER BY seq
LIMIT $5::int;
