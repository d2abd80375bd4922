-- For operators: the audit of an entry, oldest first.
SELECT
  verdict, status, forced, resolved_by, note, state_before, reason_before, open_intents,
  (extract(epoch FROM resolved_at) * 1000)::float8 AS resolved_at
FROM oncekey.resolution
WHERE entry_id = $1::bytea
ORDER BY seq;
