-- Of the bodies that were just put off: whether an entry points at each. One whose time has changed since is left out: a
-- purge has made it due anew, or another sweeper has it by now, and two would remove it, and count it, twice. A purge that
-- commits after this makes it due again.
SELECT b.pointer, e.id IS NOT NULL AS in_use
FROM jsonb_to_recordset($1::text::jsonb) AS taken(pointer text, mark text)
JOIN oncekey.body AS b ON b.pointer = taken.pointer AND extract(epoch FROM b.check_at)::text = taken.mark
LEFT JOIN oncekey.entry AS e ON e.id = b.entry_id AND e.body_pointer = b.pointer;
