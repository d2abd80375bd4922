-- The finished entry of a transaction run: one insert, no dead tuple. No row comes back when the transaction is not the
-- one that took the locks: the handler ended it, and this statement would commit on its own.
INSERT INTO oncekey.entry (
  id, tenant, client, operation, key, run_kind, operation_version, fingerprint, wire_digest, fence, seed, input, context,
  correlation, state, status, outcome, outcome_gone, body_pointer, created_at, completed_at, expires_at, tombstone_until
)
SELECT
  $1::bytea, $2::text, $3::text, $4::text, $5::text, $6::text, $7::int, $8::bytea, $9::bytea, $10::bytea, $11::bytea,
  $12::bytea, $13::bytea, $14::text, $15::text, $16::int, $17::bytea, $17::bytea IS NULL, $18::text, statement_timestamp(),
  statement_timestamp(),
  statement_timestamp() + $19::float8 * interval '1 millisecond',
  CASE WHEN $20::float8 > 0 THEN statement_timestamp() + ($19::float8 + $20::float8) * interval '1 millisecond' END
WHERE $21::text IS NULL OR pg_current_xact_id()::text = $21::text
RETURNING true AS matched;
