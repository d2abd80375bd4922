-- Whether a connection still lives.
SELECT true AS alive;
