-- The oldest release that may work with the layout as it is: those before migration 4 do not look into partitions.
UPDATE oncekey.migration SET minimum_reader = $1::int WHERE number = 4;
