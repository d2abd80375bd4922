-- For the console: the indexes of its own that are there and usable, whether outcomes lie in partitions, and whether this
-- role may see the keys of outside calls.
SELECT
  coalesce(string_agg(c.relname, ' ' ORDER BY c.relname), '') AS names,
  EXISTS (SELECT FROM pg_inherits WHERE inhparent = 'oncekey.outcome'::regclass) AS apart,
  has_column_privilege('oncekey.intent', 'derived_key', 'SELECT') AS keys
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE c.relnamespace = 'oncekey'::regnamespace AND c.relname LIKE 'console\_%' AND i.indisvalid AND i.indisready;
