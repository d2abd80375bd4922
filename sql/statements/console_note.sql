-- What an operator did that is no decision about an entry.
INSERT INTO oncekey.audit (action, acted_by, tenant, entry_id, message_id, note, acted_at)
SELECT $1::text, $2::text, $3::text, $4::bytea, $5::text, $6::text, clock_timestamp();
