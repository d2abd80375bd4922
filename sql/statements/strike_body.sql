-- Strikes a body from the list: it is in use, or removed. One that a purge noted anew since it was handed out is due now,
-- not later, and stays: its sweeper may have seen the entry that is gone since.
DELETE FROM oncekey.body WHERE pointer = $1::text AND check_at > clock_timestamp();
