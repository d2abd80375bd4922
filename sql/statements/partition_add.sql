-- Notes a partition, in the transaction that makes it. No row: there is one already.
INSERT INTO oncekey.outcome_partition (name, from_at, to_at)
VALUES ($1::text, to_timestamp($2::float8), to_timestamp($3::float8))
ON CONFLICT (name) DO NOTHING
RETURNING true AS matched;
