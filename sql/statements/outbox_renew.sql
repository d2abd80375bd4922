-- Extends the lease of a message.
UPDATE oncekey.outbox
SET available_at = clock_timestamp() + $3::float8 * interval '1 millisecond'
WHERE id = $1::text AND fence = $2::bytea AND state = 'pending'
RETURNING true AS matched;
