-- Ends an attempt inside the caller's transaction, which keeps what is left of it, locks included.
RELEASE SAVEPOINT oncekey_within;
