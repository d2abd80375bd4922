-- Back in the plain layout, with the last partition gone.
UPDATE oncekey.layout
SET guarded = false
WHERE guarded AND name = 'plain' AND NOT EXISTS (SELECT FROM oncekey.outcome_partition)
RETURNING true AS matched;
