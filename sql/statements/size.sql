-- For operators: bytes on disk, indexes and TOAST included, and messages that wait in the outbox.
SELECT
  pg_total_relation_size('oncekey.entry'::regclass)::text AS entry_bytes,
  pg_total_relation_size('oncekey.phase'::regclass)::text AS phase_bytes,
  pg_total_relation_size('oncekey.intent'::regclass)::text AS intent_bytes,
  pg_total_relation_size('oncekey.outbox'::regclass)::text AS outbox_bytes,
  (SELECT count(*) FROM oncekey.outbox WHERE state = 'pending')::text AS pending_messages;
