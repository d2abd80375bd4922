-- For the console: how many there are of what waits, each counted by an index up to a bound. $1: only this tenant's, among
-- the first $2 of each index; $3: the most that is counted.
SELECT
  name, least(count(*) FILTER (WHERE counted), $3::int)::int AS entries,
  count(*) FILTER (WHERE counted) > $3::int OR count(*) > $2::int AS more,
  (extract(epoch FROM min(at) FILTER (WHERE counted)) * 1000)::float8 AS oldest_at
FROM (
  SELECT name, at, $1::text IS NULL OR tenant = $1::text AS counted
  FROM (
    (
      SELECT 'unresolved' AS name, tenant, created_at AS at
      FROM oncekey.entry
      WHERE state = 'needs_recovery'
      ORDER BY created_at
      LIMIT $2::int + 1
    )
    UNION ALL
    (
      SELECT 'in_progress', tenant, created_at
      FROM oncekey.entry
      WHERE state = 'in_progress'
      ORDER BY lease_until
      LIMIT $2::int + 1
    )
    UNION ALL
    (
      SELECT 'lapsed', tenant, lease_until
      FROM oncekey.entry
      WHERE state = 'in_progress' AND lease_until <= statement_timestamp()
      ORDER BY lease_until
      LIMIT $2::int + 1
    )
    UNION ALL
    (
      SELECT 'purge_due', tenant, CASE WHEN outcome_gone THEN greatest(expires_at, tombstone_until) ELSE expires_at END
      FROM oncekey.entry
      WHERE expires_at IS NOT NULL
        AND CASE WHEN outcome_gone THEN greatest(expires_at, tombstone_until) ELSE expires_at END <= statement_timestamp()
      ORDER BY CASE WHEN outcome_gone THEN greatest(expires_at, tombstone_until) ELSE expires_at END
      LIMIT $2::int + 1
    )
    UNION ALL
    (
      SELECT 'pending', tenant, created_at
      FROM oncekey.outbox
      WHERE state = 'pending' AND order_by IS NULL
      ORDER BY available_at, seq
      LIMIT $2::int + 1
    )
    UNION ALL
    (
      SELECT 'pending', tenant, created_at
      FROM oncekey.outbox
      WHERE state = 'pending' AND order_by IS NOT NULL
      ORDER BY available_at, seq
      LIMIT $2::int + 1
    )
    UNION ALL
    (
      SELECT 'dead', tenant, created_at
      FROM oncekey.outbox
      WHERE state = 'dead'
      ORDER BY topic
      LIMIT $2::int + 1
    )
  ) AS waiting
) AS found
GROUP BY name;
