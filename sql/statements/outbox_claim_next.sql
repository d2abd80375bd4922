-- Leases the message behind a delivered one in its order, if it is due and of a wanted topic.
WITH head AS MATERIALIZED (
  SELECT o.id
  FROM oncekey.outbox AS o
  WHERE o.tenant = $1::text
    AND o.order_by = $2::text
    AND o.order_by IS NOT NULL
    -- That one itself, too: while it is not delivered, nothing behind it is.
    AND o.seq >= $3::bigint
    AND o.state <> 'delivered'
  ORDER BY o.seq
  LIMIT 1
),
due AS MATERIALIZED (
  SELECT m.id AS due_id
  FROM oncekey.outbox AS m, head
  WHERE m.id = head.id
    AND m.seq > $3::bigint
    AND m.state = 'pending'
    AND m.available_at <= statement_timestamp()
    AND EXISTS (
      SELECT FROM jsonb_array_elements_text($4::text::jsonb) AS w(topic)
      WHERE CASE WHEN right(w.topic, 1) = '*' THEN starts_with(m.topic, left(w.topic, -1)) ELSE m.topic = w.topic END
    )
  FOR UPDATE OF m SKIP LOCKED
)
UPDATE oncekey.outbox
SET
  available_at = clock_timestamp() + $5::float8 * interval '1 millisecond',
  attempts = attempts + 1,
  fence = uuid_send(gen_random_uuid())
FROM due
WHERE id = due_id AND state = 'pending'
RETURNING
  id, topic, payload, key, order_by, tenant, client, entry_id, context, correlation, seq::text AS seq, attempts, fence,
  (extract(epoch FROM created_at) * 1000)::float8 AS created_at;
