-- What the layout is to be from now on; $2 and $3 null: as before. Where partitions may come, entries ask them from now on.
UPDATE oncekey.layout
SET
  name = $1::text,
  width_s = coalesce($2::int, width_s),
  retention_s = coalesce($3::int, retention_s),
  guarded = guarded OR $1::text = 'partitioned'
RETURNING true AS matched;
