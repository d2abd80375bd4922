-- Whether the schema was ever migrated.
SELECT to_regclass('oncekey.migration') IS NOT NULL AS found;
