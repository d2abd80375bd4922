-- For the console: its transaction ends soon, whatever it finds. Whole tables are not read while an index will do, however
-- small they are: what is slow among many entries shows among few.
SELECT
  set_config('transaction_read_only', CASE WHEN $1::boolean THEN 'on' ELSE 'off' END, true),
  set_config('statement_timeout', $2::text, true),
  set_config('lock_timeout', '1000', true),
  set_config('idle_in_transaction_session_timeout', '10000', true),
  set_config('enable_seqscan', 'off', true),
  CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END;
