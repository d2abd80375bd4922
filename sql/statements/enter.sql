-- The first statement of a phase: limits for this transaction only, and whether the fence still owns the entry. The row
-- is not locked: the lease must stay renewable while the phase runs; the last statement of the phase is fenced again.
WITH limits AS MATERIALIZED (
  SELECT
    set_config('lock_timeout', $3::text, true) AS lock_timeout,
    set_config('idle_in_transaction_session_timeout', $4::text, true) AS idle_timeout,
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
),
owner AS MATERIALIZED (
  SELECT EXISTS (
    SELECT FROM oncekey.entry
    WHERE id = $1::bytea AND fence = $2::bytea AND state IN ('in_progress', 'needs_recovery')
  ) AS matched
  FROM limits
)
SELECT matched, CASE WHEN matched THEN pg_current_xact_id()::text END AS xact FROM owner;
