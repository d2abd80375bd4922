-- The partitioned layout: outcomes that are only ever inserted, in partitions that are dropped whole.
-- minimum reader: 1
--
-- Nothing changes until the layout does: the table has no partitions, and the guard on entries is off. Releases before this
-- one do not look into `outcome`, so the change of layout raises this migration's minimum reader to 4.

-- What the layout is to be: one row. guarded: whether `entry` asks `outcome` before a row is added to it. maintained_until: a
-- lease, so that the maintainers of several workers do not do the same at the same time.
CREATE TABLE oncekey.layout (
  maintained_until timestamptz,
  width_s integer NOT NULL DEFAULT 86400,
  retention_s integer NOT NULL DEFAULT 86400,
  one boolean NOT NULL DEFAULT true,
  guarded boolean NOT NULL DEFAULT false,
  name text NOT NULL DEFAULT 'plain',
  CONSTRAINT layout_pkey PRIMARY KEY (one),
  CONSTRAINT layout_one CHECK (one),
  CONSTRAINT layout_width CHECK (width_s >= 1),
  CONSTRAINT layout_retention CHECK (retention_s >= 1),
  CONSTRAINT layout_name CHECK (name IN ('plain', 'partitioned'))
);

INSERT INTO oncekey.layout DEFAULT VALUES;

-- Finished entries, by the instant at which they may be forgotten: a partition whose upper bound is past holds nothing that
-- anybody needs. Columns and checks are those of `entry`, in their order: statements read both as one. Kept apart are only
-- entries with nothing that outlives or hangs on them: no tombstone, no body elsewhere, nothing recorded.
CREATE TABLE oncekey.outcome (
  LIKE oncekey.entry INCLUDING DEFAULTS INCLUDING CONSTRAINTS,
  CONSTRAINT outcome_pkey PRIMARY KEY (id, expires_at)
) PARTITION BY RANGE (expires_at);

-- Which spans have a partition. A row comes with its partition and goes with it, in the same commits; what falls into none
-- stays in `entry`, so that no outcome is ever without a place.
CREATE TABLE oncekey.outcome_partition (
  from_at timestamptz NOT NULL,
  to_at timestamptz NOT NULL,
  name text NOT NULL,
  CONSTRAINT outcome_partition_pkey PRIMARY KEY (name),
  CONSTRAINT outcome_partition_span CHECK (from_at < to_at)
);

-- One identity, one row, over both tables: no index can say that, so a lock does. Both sides insert first, then take the
-- lock of the identity, then look into the other table with a newer snapshot; whoever comes second sees the first one's
-- commit. At REPEATABLE READ the second look would be as old as the first: refused. The name of the constraint is the one
-- that a second row in `entry` would violate, which is what the answer means. A claim may be sent again after its entry was
-- completed, so its fence says nothing; an outcome tells itself from another by its end, which the primary key keeps apart.
-- Semicolons begin lines here: at a line's end one would end the whole statement for those that split this file.
CREATE FUNCTION oncekey.one_of_identity() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  taken boolean
; BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'the partitioned layout needs READ COMMITTED' USING ERRCODE = '25001'
  ; END IF
  ; PERFORM pg_advisory_xact_lock(('x' || encode(substr(NEW.id, 9, 8), 'hex'))::bit(64)::bigint)
  ; IF TG_ARGV[0] = 'outcome' THEN
    taken := EXISTS (SELECT FROM oncekey.entry AS e WHERE e.id = NEW.id)
  ; END IF
  ; IF taken IS NOT TRUE THEN
    taken := EXISTS (
      SELECT FROM oncekey.outcome AS o
      WHERE o.id = NEW.id
        AND o.expires_at > statement_timestamp()
        AND (TG_ARGV[0] = 'entry' OR o.expires_at <> NEW.expires_at)
    )
  ; END IF
  ; IF taken THEN
    RAISE EXCEPTION 'the identity has an entry already, see "entry_pkey"'
      USING ERRCODE = 'unique_violation', CONSTRAINT = 'entry_pkey'
  ; END IF
  ; RETURN NULL
; END
$$;

-- Only what is inserted as finished has no row in `entry` before it, and the same instant as its beginning and its end. The
-- others delete theirs in the same statement, and the unique index of `entry` makes everybody wait for that; one that began
-- and ended in the same microsecond is looked at without need.
CREATE TRIGGER outcome_one AFTER INSERT ON oncekey.outcome
  FOR EACH ROW WHEN (NEW.created_at = NEW.completed_at) EXECUTE FUNCTION oncekey.one_of_identity('outcome');

-- Costs every claim a look: switched on with the first change to the partitioned layout, off when its last partition is gone.
CREATE TRIGGER entry_one AFTER INSERT ON oncekey.entry
  FOR EACH ROW EXECUTE FUNCTION oncekey.one_of_identity('entry');

ALTER TABLE oncekey.entry DISABLE TRIGGER entry_one;
