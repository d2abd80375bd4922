-- Strikes a partition off, in the transaction that drops it.
DELETE FROM oncekey.outcome_partition WHERE name = $1::text;
