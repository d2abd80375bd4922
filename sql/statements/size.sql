-- For operators: the schema's version, and bytes on disk, indexes and TOAST included.
SELECT
  (SELECT max(number) FROM oncekey.migration) AS schema_version,
  pg_total_relation_size('oncekey.entry'::regclass)::text AS entry_bytes,
  (
    SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::text FROM pg_partition_tree('oncekey.outcome'::regclass)
  ) AS outcome_bytes,
  pg_total_relation_size('oncekey.phase'::regclass)::text AS phase_bytes,
  pg_total_relation_size('oncekey.intent'::regclass)::text AS intent_bytes,
  pg_total_relation_size('oncekey.outbox'::regclass)::text AS outbox_bytes,
  pg_total_relation_size('oncekey.inbox'::regclass)::text AS inbox_bytes;
