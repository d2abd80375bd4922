-- An outbox row, in the transaction of the effect it tells of.
INSERT INTO oncekey.outbox (id, topic, payload, key, order_by, tenant, entry_id, created_at, available_at)
SELECT
  $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::bytea, statement_timestamp(),
  statement_timestamp() + $8::float8 * interval '1 millisecond';
