-- For the console: the tables, their bytes with indexes and TOAST, and the rows that the last analysis counted.
SELECT
  c.relname AS name,
  (
    CASE c.relkind
      WHEN 'p' THEN (SELECT coalesce(sum(pg_total_relation_size(relid)), 0) FROM pg_partition_tree(c.oid))
      ELSE pg_total_relation_size(c.oid)
    END
  )::text AS bytes,
  (
    CASE c.relkind
      WHEN 'p' THEN (
        SELECT coalesce(sum(greatest(leaf.reltuples, 0)), 0)
        FROM pg_partition_tree(c.oid) AS part JOIN pg_class AS leaf ON leaf.oid = part.relid
        WHERE part.isleaf
      )
      ELSE greatest(c.reltuples, 0)
    END
  )::float8 AS rows
FROM pg_class AS c
WHERE c.relnamespace = 'oncekey'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname;
