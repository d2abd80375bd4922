-- Gives a message up. It holds back its order until an operator retries or discards it.
UPDATE oncekey.outbox
SET state = 'dead', fence = NULL, reason = $3::text
WHERE id = $1::text AND fence = $2::bytea AND state = 'pending'
RETURNING true AS matched;
