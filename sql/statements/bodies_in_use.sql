-- Those of the bodies that an entry points at. A purge that commits after this makes them due again.
SELECT b.pointer
FROM oncekey.body AS b
JOIN oncekey.entry AS e ON e.id = b.entry_id AND e.body_pointer = b.pointer
WHERE b.pointer IN (SELECT value FROM jsonb_array_elements_text($1::text::jsonb));
