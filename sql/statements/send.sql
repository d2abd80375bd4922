-- An outbox row, in the transaction of the effect it tells of. Within an order, the place in it must grow with the
-- commits: a lock of that order is held until the transaction ends, and is taken before the row draws its number, since
-- the number is made for a row that comes out of the filter.
WITH turn AS MATERIALIZED (
  SELECT CASE WHEN $12::bigint IS NULL THEN true ELSE pg_advisory_xact_lock($12::bigint) IS NOT NULL END AS taken
)
INSERT INTO oncekey.outbox (
  id, topic, payload, key, order_by, tenant, client, entry_id, context, correlation, created_at, available_at
)
SELECT
  $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::bytea, $9::bytea, $10::text,
  clock_timestamp(), clock_timestamp() + $11::float8 * interval '1 millisecond'
FROM turn
WHERE turn.taken;
