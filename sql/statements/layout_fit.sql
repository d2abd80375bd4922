-- Whether the isolation level of this role and database suits the layout.
SELECT guarded AND current_setting('transaction_isolation') <> 'read committed' AS unfit FROM oncekey.layout;
