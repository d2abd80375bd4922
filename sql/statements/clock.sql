-- What time it is here: what a client says of its first attempt is compared with it.
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS clock_ms;
