-- For the console: messages that are still to be delivered, by when they are due. $1: only this tenant's; $2 (microseconds
-- since 1970), $3: behind this one.
SELECT
  id, topic, tenant, state, attempts, order_by, reason, encode(entry_id, 'hex') AS entry_id, seq::text AS seq,
  (extract(epoch FROM created_at) * 1000)::float8 AS created_at,
  (extract(epoch FROM available_at) * 1000)::float8 AS available_at,
  (extract(epoch FROM available_at) * 1000000)::bigint::text AS due
FROM (
  (
    SELECT id, topic, tenant, state, attempts, order_by, reason, entry_id, seq, created_at, available_at
    FROM oncekey.outbox
    WHERE state = 'pending' AND order_by IS NULL
      AND (available_at, seq) > (timestamptz 'epoch' + $2::bigint * interval '1 microsecond', $3::bigint)
      AND ($1::text IS NULL OR tenant = $1::text)
    ORDER BY available_at, seq
    LIMIT $4::int
  )
  UNION ALL
  (
    SELECT id, topic, tenant, state, attempts, order_by, reason, entry_id, seq, created_at, available_at
    FROM oncekey.outbox
    WHERE state = 'pending' AND order_by IS NOT NULL
      AND (available_at, seq) > (timestamptz 'epoch' + $2::bigint * interval '1 microsecond', $3::bigint)
      AND ($1::text IS NULL OR tenant = $1::text)
    ORDER BY available_at, seq
    LIMIT $4::int
  )
) AS pending
ORDER BY available_at, seq
LIMIT $4::int;
