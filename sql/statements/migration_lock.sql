-- Two migrations never run at the same time. Held to the end of the transaction.
SELECT true AS locked FROM (SELECT pg_advisory_xact_lock($1::bigint)) AS waited;
