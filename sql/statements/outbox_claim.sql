-- Leases due messages, oldest first; of those with one order only the first that is not delivered. SKIP LOCKED: claimers
-- never wait for each other. The lease is available_at, moved into the future under a fence of the claimer's own. Of the
-- ordered ones only the oldest thousand are looked at: a long order would be read from end to end by every claim. How
-- many these were is told, for outbox_claim_heads.sql to go on where they were not all.
WITH wanted AS MATERIALIZED (
  SELECT value AS topic, CASE WHEN right(value, 1) = '*' THEN left(value, -1) END AS prefix
  FROM jsonb_array_elements_text($1::text::jsonb)
),
unordered AS MATERIALIZED (
  SELECT m.id AS due_id, m.available_at AS due_at, m.seq AS place
  FROM oncekey.outbox AS m
  WHERE m.state = 'pending'
    AND m.order_by IS NULL
    AND m.available_at <= statement_timestamp()
    AND EXISTS (
      SELECT FROM wanted AS w
      WHERE CASE WHEN w.prefix IS NULL THEN m.topic = w.topic ELSE starts_with(m.topic, w.prefix) END
    )
  ORDER BY m.available_at, m.seq
  LIMIT $2::int
  FOR UPDATE OF m SKIP LOCKED
),
looked AS MATERIALIZED (
  SELECT id, topic, tenant, order_by
  FROM oncekey.outbox
  WHERE state = 'pending' AND order_by IS NOT NULL AND available_at <= statement_timestamp()
  ORDER BY available_at, seq
  LIMIT 1000
),
heads AS MATERIALIZED (
  SELECT looked.id
  FROM looked
  WHERE EXISTS (
      SELECT FROM wanted AS w
      WHERE CASE WHEN w.prefix IS NULL THEN looked.topic = w.topic ELSE starts_with(looked.topic, w.prefix) END
    )
    AND looked.id = (
      SELECT o.id
      FROM oncekey.outbox AS o
      WHERE o.tenant = looked.tenant
        AND o.order_by = looked.order_by
        AND o.order_by IS NOT NULL
        AND o.state <> 'delivered'
      ORDER BY o.seq
      LIMIT 1
    )
),
ordered AS MATERIALIZED (
  SELECT m.id AS due_id, m.available_at AS due_at, m.seq AS place
  FROM oncekey.outbox AS m, heads
  WHERE m.id = heads.id AND m.state = 'pending' AND m.available_at <= statement_timestamp()
  ORDER BY m.available_at, m.seq
  LIMIT $2::int
  FOR UPDATE OF m SKIP LOCKED
),
due AS MATERIALIZED (
  SELECT joined.due_id
  FROM (SELECT * FROM unordered UNION ALL SELECT * FROM ordered) AS joined
  ORDER BY joined.due_at, joined.place
  LIMIT $2::int
),
leased AS (
  UPDATE oncekey.outbox
  SET
    available_at = clock_timestamp() + $3::float8 * interval '1 millisecond',
    attempts = attempts + 1,
    fence = uuid_send(gen_random_uuid())
  FROM due
  WHERE id = due_id AND state = 'pending'
  RETURNING
    id, topic, payload, key, order_by, tenant, client, entry_id, context, correlation, seq::text AS seq, attempts, fence,
    (extract(epoch FROM created_at) * 1000)::float8 AS created_at
)
SELECT leased.*, looks.looked
FROM (SELECT count(*)::int AS looked FROM looked) AS looks
LEFT JOIN leased ON true;
