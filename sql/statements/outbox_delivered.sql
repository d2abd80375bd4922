-- Marks a message as delivered. Lost in a crash it is delivered again, under the same id: no need to wait for the disk.
UPDATE oncekey.outbox
SET state = 'delivered', delivered_at = clock_timestamp(), fence = NULL, reason = NULL
WHERE id = $1::text AND fence = $2::bytea AND state = 'pending'
RETURNING true AS matched;
