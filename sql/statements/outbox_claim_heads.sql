-- Leases the first message of each order, where more ordered ones are due than outbox_claim.sql looks at. Steps from one
-- order to the next by the index: it reads as many rows as there are orders, however long these are.
WITH RECURSIVE orders AS (
  (
    SELECT o.tenant, o.order_by
    FROM oncekey.outbox AS o
    WHERE o.order_by IS NOT NULL AND o.state <> 'delivered'
    ORDER BY o.tenant, o.order_by
    LIMIT 1
  )
  UNION ALL
  SELECT following.tenant, following.order_by
  FROM orders, LATERAL (
    SELECT o.tenant, o.order_by
    FROM oncekey.outbox AS o
    WHERE o.order_by IS NOT NULL
      AND o.state <> 'delivered'
      AND (o.tenant, o.order_by) > (orders.tenant, orders.order_by)
    ORDER BY o.tenant, o.order_by
    LIMIT 1
  ) AS following
),
heads AS MATERIALIZED (
  SELECT head.id
  FROM orders, LATERAL (
    SELECT o.id, o.state, o.topic, o.available_at
    FROM oncekey.outbox AS o
    WHERE o.tenant = orders.tenant
      AND o.order_by = orders.order_by
      AND o.order_by IS NOT NULL
      AND o.state <> 'delivered'
    ORDER BY o.seq
    LIMIT 1
  ) AS head
  WHERE head.state = 'pending'
    AND head.available_at <= statement_timestamp()
    AND EXISTS (
      SELECT FROM jsonb_array_elements_text($1::text::jsonb) AS w(topic)
      WHERE CASE
        WHEN right(w.topic, 1) = '*' THEN starts_with(head.topic, left(w.topic, -1))
        ELSE head.topic = w.topic
      END
    )
),
due AS MATERIALIZED (
  SELECT m.id AS due_id
  FROM oncekey.outbox AS m, heads
  WHERE m.id = heads.id AND m.state = 'pending' AND m.available_at <= statement_timestamp()
  ORDER BY m.available_at, m.seq
  LIMIT $2::int
  FOR UPDATE OF m SKIP LOCKED
)
UPDATE oncekey.outbox
SET
  available_at = clock_timestamp() + $3::float8 * interval '1 millisecond',
  attempts = attempts + 1,
  fence = uuid_send(gen_random_uuid())
FROM due
WHERE id = due_id AND state = 'pending'
RETURNING
  id, topic, payload, key, order_by, tenant, client, entry_id, context, correlation, seq::text AS seq, attempts, fence,
  (extract(epoch FROM created_at) * 1000)::float8 AS created_at;
