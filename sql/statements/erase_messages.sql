-- Deletes the messages of a selection that are done with (delivered, or given up) in one window of ids, and counts those
-- that are still to be delivered, which stay. Which operation and key a message belongs to only its entry knows; without
-- $7 nothing is changed.
WITH looked AS MATERIALIZED (
  SELECT id, tenant, client, entry_id, state
  FROM oncekey.outbox
  WHERE id > $1::text
  ORDER BY id
  LIMIT $2::int
),
selected AS MATERIALIZED (
  SELECT id, state
  FROM looked
  WHERE tenant = $3::text
    AND ($4::boolean OR client IS NOT DISTINCT FROM $5::text)
    AND (
      $6::text IS NULL
      OR EXISTS (
        SELECT
        FROM oncekey.entry AS e, jsonb_to_record($6::text::jsonb) AS wanted(operation text, keys jsonb)
        WHERE e.id = looked.entry_id
          AND (wanted.operation IS NULL OR e.operation = wanted.operation)
          AND (wanted.keys IS NULL OR e.key IN (SELECT value FROM jsonb_array_elements_text(wanted.keys)))
      )
    )
),
free AS MATERIALIZED (
  SELECT o.id
  FROM oncekey.outbox AS o, selected AS s
  WHERE $7::boolean AND o.id = s.id AND o.state IN ('delivered', 'dead')
  FOR UPDATE OF o SKIP LOCKED
),
deleted AS (DELETE FROM oncekey.outbox AS o USING free WHERE o.id = free.id RETURNING o.state),
done AS (SELECT state FROM deleted UNION ALL SELECT state FROM selected WHERE NOT $7::boolean)
SELECT
  (SELECT id FROM looked ORDER BY id DESC LIMIT 1) AS last,
  (SELECT count(*) FROM selected)::int AS selected,
  (SELECT count(*) FROM selected WHERE state IN ('delivered', 'dead'))::int AS holding,
  (SELECT count(*) FROM deleted)::int AS erased,
  (SELECT count(*) FROM done WHERE state = 'delivered')::int AS delivered,
  (SELECT count(*) FROM done WHERE state = 'dead')::int AS dead,
  (SELECT count(*) FROM selected WHERE state = 'pending')::int AS pending;
