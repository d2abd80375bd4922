-- In a transaction of the caller's own: locks the entry until that transaction ends, if the fence still owns it.
SELECT true AS matched FROM oncekey.entry
WHERE id = $1::bytea AND fence = $2::bytea AND state = 'in_progress'
FOR NO KEY UPDATE;
