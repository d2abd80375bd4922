-- Gives a message back, to be claimed later.
UPDATE oncekey.outbox
SET available_at = clock_timestamp() + $3::float8 * interval '1 millisecond', fence = NULL, reason = $4::text
WHERE id = $1::text AND fence = $2::bytea AND state = 'pending'
RETURNING true AS matched;
