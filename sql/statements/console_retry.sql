-- An operator asks the sweeper to take an entry up now, and that is noted. $2: only this tenant's.
WITH asked AS (
  UPDATE oncekey.entry
  SET sweep_at = clock_timestamp()
  WHERE id = $1::bytea
    AND ($2::text IS NULL OR tenant = $2::text)
    AND state IN ('needs_recovery', 'released')
    -- What take_due.sql would pass by.
    AND (run_kind = 'capture' OR (run_kind = 'phases' AND input IS NOT NULL))
  RETURNING id, tenant
),
noted AS (
  INSERT INTO oncekey.audit (action, acted_by, tenant, entry_id, note, acted_at)
  SELECT 'retry', $3::text, tenant, id, $4::text, clock_timestamp() FROM asked
)
SELECT count(*)::int AS changed FROM asked;
