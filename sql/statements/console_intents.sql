-- For the console: the outside calls of an entry; of their keys only the ends ($2), or all of them.
SELECT
  call, generation, state, form,
  CASE WHEN $2::boolean THEN left(derived_key, 4) || '…' || right(derived_key, 4) ELSE derived_key END AS derived_key,
  (extract(epoch FROM started_at) * 1000)::float8 AS started_at,
  (extract(epoch FROM settles_at) * 1000)::float8 AS settles_at
FROM oncekey.intent
WHERE entry_id = $1::bytea
ORDER BY started_at, call, generation;
