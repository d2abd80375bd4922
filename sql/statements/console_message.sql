-- For the console: whether a message is there, and whose. $2: only this tenant's.
SELECT state FROM oncekey.outbox WHERE id = $1::text AND ($2::text IS NULL OR tenant = $2::text);
