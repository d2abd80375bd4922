-- Whether somebody holds an identity's lock now (see lock.sql). Looks without taking it: a look that held it for an
-- instant would make a request that comes in that instant think that another payload runs.
SELECT EXISTS (
  SELECT FROM pg_locks
  WHERE locktype = 'advisory'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid = (($1::bigint >> 32) & 4294967295)::oid
    AND objid = ($1::bigint & 4294967295)::oid
    AND objsubid = 1
    AND granted
) AS running;
