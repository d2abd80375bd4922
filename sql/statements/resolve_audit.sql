-- Who settled an entry, and what was known then.
INSERT INTO oncekey.resolution (
  entry_id, verdict, status, forced, resolved_by, note, state_before, reason_before, open_intents, resolved_at, tenant
)
SELECT
  $1::bytea, $2::text, $3::int, $4::boolean, $5::text, $6::text, $7::text, $8::text, $9::text, clock_timestamp(),
  (SELECT e.tenant FROM oncekey.entry AS e WHERE e.id = $1::bytea);
