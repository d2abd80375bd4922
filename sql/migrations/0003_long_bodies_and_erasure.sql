-- Long bodies that lie outside of the database.
-- minimum reader: 1

-- Where the outcome's body lies in the body store; null: in the outcome itself. Processes of older releases do not know
-- it: what they purge leaves its body behind, which is the only harm.
ALTER TABLE oncekey.entry ADD COLUMN body_pointer text;

-- Bodies that may have to be removed from the body store: noted before one is put, because its owner may die before the
-- outcome commits, and when the entry that points at it is deleted or erased.
CREATE TABLE oncekey.body (
  check_at timestamptz NOT NULL,
  pointer text NOT NULL,
  entry_id bytea NOT NULL,
  CONSTRAINT body_pkey PRIMARY KEY (pointer),
  CONSTRAINT body_pointer_length CHECK (char_length(pointer) BETWEEN 1 AND 255),
  CONSTRAINT body_entry_id_length CHECK (octet_length(entry_id) = 32)
);

CREATE INDEX body_due ON oncekey.body (check_at);
