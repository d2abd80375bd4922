-- The layout and its partitions, one row each, or one without a partition. A partition is in its place (attached), on its way
-- out (pending: a detach that was interrupted or still waits; detached), or was never made or is dropped already (gone).
SELECT
  l.name, l.guarded, l.width_s, l.retention_s,
  current_setting('server_version_num')::int AS server_version,
  current_setting('transaction_isolation') AS isolation,
  (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'oncekey.outcome'::regclass) AS owned,
  -- Another role than this one, as an identifier: partitions are to be its, too.
  (
    SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_class
    WHERE oid = 'oncekey.outcome'::regclass AND pg_get_userbyid(relowner) <> current_user
  ) AS other_owner,
  (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now,
  p.name AS partition,
  (extract(epoch FROM p.from_at) * 1000)::float8 AS from_at,
  (extract(epoch FROM p.to_at) * 1000)::float8 AS to_at,
  p.to_at <= clock_timestamp() AS expired,
  coalesce(pg_total_relation_size(c.oid), 0)::text AS bytes,
  CASE
    WHEN c.oid IS NULL THEN 'gone'
    WHEN i.inhrelid IS NULL THEN 'detached'
    -- As JSON: PostgreSQL 13 has no such column.
    WHEN to_jsonb(i) ->> 'inhdetachpending' = 'true' THEN 'pending'
    ELSE 'attached'
  END AS state
FROM oncekey.layout AS l
LEFT JOIN oncekey.outcome_partition AS p ON true
LEFT JOIN pg_class AS c
  ON c.relname = p.name AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'oncekey.outcome'::regclass)
LEFT JOIN pg_inherits AS i ON i.inhrelid = c.oid AND i.inhparent = 'oncekey.outcome'::regclass
ORDER BY p.from_at;
