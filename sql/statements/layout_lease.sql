-- Who maintains the layout: a lease, which another maintainer waits out. $1 milliseconds; 0 gives it back.
UPDATE oncekey.layout
SET maintained_until = clock_timestamp() + $1::float8 * interval '1 millisecond'
WHERE $1::float8 = 0 OR maintained_until IS NULL OR maintained_until <= clock_timestamp()
RETURNING true AS matched;
