-- An operator makes an undelivered message due at once, with all its attempts before it, and that is noted. One that a
-- relay holds is left to it. $2: only this tenant's.
WITH retried AS (
  UPDATE oncekey.outbox
  SET state = 'pending', available_at = clock_timestamp(), attempts = 0, fence = NULL
  WHERE id = $1::text
    AND ($2::text IS NULL OR tenant = $2::text)
    AND (state = 'dead' OR (state = 'pending' AND (fence IS NULL OR available_at <= clock_timestamp())))
  RETURNING id, tenant, entry_id
),
noted AS (
  INSERT INTO oncekey.audit (action, acted_by, tenant, entry_id, message_id, note, acted_at)
  SELECT 'resend', $3::text, tenant, entry_id, id, $4::text, clock_timestamp() FROM retried
)
SELECT count(*)::int AS changed FROM retried;
