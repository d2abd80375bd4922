-- For the console: what was done by hand, newest first. $1: only this tenant's; $2, $3: older than these places.
SELECT
  source, place::text AS place, by_name, action, entry_id, message_id, tenant, verdict, note,
  (extract(epoch FROM at) * 1000)::float8 AS at
FROM (
  (
    SELECT
      'resolution' AS source, seq AS place, resolved_by AS by_name, 'resolve' AS action, encode(entry_id, 'hex') AS entry_id,
      NULL::text AS message_id, tenant, verdict, note, resolved_at AS at
    FROM oncekey.resolution
    WHERE seq < $2::bigint AND ($1::text IS NULL OR tenant = $1::text)
    ORDER BY seq DESC
    LIMIT $4::int
  )
  UNION ALL
  (
    SELECT
      'audit', seq, acted_by, action, encode(entry_id, 'hex'), message_id, tenant, NULL, note, acted_at
    FROM oncekey.audit
    WHERE seq < $3::bigint AND ($1::text IS NULL OR tenant = $1::text)
    ORDER BY seq DESC
    LIMIT $4::int
  )
) AS done
ORDER BY at DESC, source, place DESC
LIMIT $4::int;
