-- Notes a body before it is put: if its outcome never commits, it is found again and removed.
INSERT INTO oncekey.body (pointer, entry_id, check_at)
SELECT $1::text, $2::bytea, statement_timestamp() + $3::float8 * interval '1 millisecond';
