-- Inside a transaction that the caller opened: from here on an attempt can be undone. Fails outside a transaction, and in
-- one that has failed.
SAVEPOINT oncekey_within;
