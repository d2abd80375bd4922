-- Notes that a migration was applied.
INSERT INTO oncekey.migration (number, name, checksum, minimum_reader)
SELECT $1::int, $2::text, $3::text, $4::int;
