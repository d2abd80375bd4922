-- Undoes an attempt inside the caller's transaction: its rows, its messages, and the locks it took.
ROLLBACK TO SAVEPOINT oncekey_within;
