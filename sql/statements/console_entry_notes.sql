-- For the console: what was done by hand with an entry, oldest first, but for the decisions about it.
SELECT action, acted_by, note, (extract(epoch FROM acted_at) * 1000)::float8 AS acted_at
FROM oncekey.audit
WHERE entry_id = $1::bytea
ORDER BY seq
LIMIT 1000;
