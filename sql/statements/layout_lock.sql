-- The first statement of a transaction that changes tables: it waits for nobody for long, since others wait behind it.
SELECT set_config('lock_timeout', $1::text, true) AS lock_timeout;
