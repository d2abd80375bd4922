-- For the console: dead letters by topic, then in the order of their sending. $1: only this tenant's; $2, $3: behind this one.
SELECT
  id, topic, tenant, state, attempts, order_by, reason, encode(entry_id, 'hex') AS entry_id, seq::text AS seq,
  (extract(epoch FROM created_at) * 1000)::float8 AS created_at,
  (extract(epoch FROM available_at) * 1000)::float8 AS available_at,
  '0' AS due
FROM oncekey.outbox
WHERE state = 'dead'
  AND topic >= $2::text
  AND (topic, seq) > ($2::text, $3::bigint)
  AND ($1::text IS NULL OR tenant = $1::text)
ORDER BY topic, seq
LIMIT $4::int;
