-- The migrations that were applied. Only after schema_exists.sql said that there is a table of them.
SELECT number, name, checksum, minimum_reader FROM oncekey.migration ORDER BY number;
