-- What start() must know: the migrations that were applied, and whether this server can keep the promises.
SELECT
  number, name, checksum, minimum_reader,
  current_setting('server_version_num')::int AS server_version,
  pg_is_in_recovery() AS in_recovery,
  current_setting('server_encoding') AS encoding
FROM oncekey.migration
ORDER BY number;
