-- Everything that is recorded for an entry, in one snapshot: records by position, then intents by call and generation.
SELECT
  kind, position, name, value, NULL::int AS generation, NULL::text AS derived_key, NULL::bytea AS request_digest,
  NULL::text AS state, NULL::text AS form, NULL::float8 AS age_ms, NULL::float8 AS settles_in_ms
FROM oncekey.phase
WHERE entry_id = $1::bytea
UNION ALL
SELECT
  'intent', NULL, call, NULL, generation, derived_key, request_digest, state, form,
  (extract(epoch FROM clock_timestamp() - started_at) * 1000)::float8,
  (extract(epoch FROM settles_at - clock_timestamp()) * 1000)::float8
FROM oncekey.intent
WHERE entry_id = $1::bytea
ORDER BY position NULLS LAST, name, generation;
