-- Moves a subject to a newer version. Waits for others at it, and compares with what they committed.
INSERT INTO oncekey.subject AS s (id, tenant, source, subject, version, moved_at)
SELECT $1::bytea, $2::text, $3::text, $4::text, $5::bigint, clock_timestamp()
ON CONFLICT (id) DO UPDATE SET version = excluded.version, moved_at = excluded.moved_at
  WHERE s.version < excluded.version
RETURNING true AS matched;
