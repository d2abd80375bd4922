-- Those of the deliveries that are remembered.
SELECT id, value, (extract(epoch FROM received_at) * 1000)::float8 AS received_at
FROM oncekey.inbox
WHERE id IN (SELECT decode(digest, 'hex') FROM jsonb_array_elements_text($1::text::jsonb) AS wanted(digest))
  AND expires_at > clock_timestamp();
