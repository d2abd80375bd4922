-- For the console: what an entry has sent and the outbox still has. Needs the index on the sender (see docs/console.md).
SELECT
  id, topic, tenant, state, attempts, order_by, reason, encode(entry_id, 'hex') AS entry_id, seq::text AS seq,
  (extract(epoch FROM created_at) * 1000)::float8 AS created_at,
  (extract(epoch FROM available_at) * 1000)::float8 AS available_at,
  '0' AS due
FROM oncekey.outbox
WHERE entry_id = $1::bytea AND entry_id IS NOT NULL
ORDER BY seq
LIMIT 100;
