-- Erases what handlers gave for a tenant's deliveries, in one window of ids. The rows stay, so that no delivery acts
-- again. A mark of authorship (core/delivery.ts, first byte 0) holds nothing of anybody and stays too. Without $4 nothing
-- is changed.
WITH looked AS MATERIALIZED (
  SELECT id, tenant, value IS NOT NULL AND substr(value, 1, 1) <> '\x00'::bytea AS holds
  FROM oncekey.inbox
  WHERE id > $1::bytea
  ORDER BY id
  LIMIT $2::int
),
free AS MATERIALIZED (
  SELECT i.id
  FROM oncekey.inbox AS i, looked AS l
  WHERE $4::boolean AND i.id = l.id AND l.holds AND l.tenant = $3::text
  FOR UPDATE OF i SKIP LOCKED
),
erased AS (UPDATE oncekey.inbox AS i SET value = NULL FROM free WHERE i.id = free.id RETURNING i.id)
SELECT
  (SELECT id FROM looked ORDER BY id DESC LIMIT 1) AS last,
  (SELECT count(*) FROM looked WHERE tenant = $3::text)::int AS selected,
  (SELECT count(*) FROM looked WHERE tenant = $3::text AND holds)::int AS holding,
  (SELECT count(*) FROM erased)::int AS erased;
