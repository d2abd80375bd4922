-- The last accepted number of a producer.
SELECT epoch::text AS epoch, sequence::text AS sequence FROM oncekey.producer WHERE id = $1::bytea;
