-- What an operator's decision depends on, with the entry locked until that is committed: nobody takes it over in between.
-- Not its input and outcome: an entry that cannot be decoded must be resolvable, too.
WITH limits AS MATERIALIZED (
  SELECT
    set_config('lock_timeout', $2::text, true) AS lock_timeout,
    set_config('idle_in_transaction_session_timeout', $3::text, true) AS idle_timeout,
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    END AS synchronous
)
SELECT
  state, reason, fence, attempt,
  coalesce(extract(epoch FROM greatest(lease_until, not_before) - clock_timestamp()) * 1000, 0)::float8 AS claimable_in_ms,
  (extract(epoch FROM settles_at - clock_timestamp()) * 1000)::float8 AS settles_in_ms,
  coalesce(
    expires_at <= clock_timestamp() AND (tombstone_until IS NULL OR tombstone_until <= clock_timestamp()), false
  ) AS absent
FROM oncekey.entry, limits
WHERE id = $1::bytea
FOR UPDATE OF entry;
