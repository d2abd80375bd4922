-- The console's audit, and an index of the entries that need a person.
-- minimum reader: 1

-- Who did what by hand that is no decision about an entry (these are in `resolution`): looked at content, asked the sweeper,
-- sent a message again or gave it up, signed in. Rows are only ever added.
CREATE TABLE oncekey.audit (
  acted_at timestamptz NOT NULL,
  seq bigint GENERATED ALWAYS AS IDENTITY,
  entry_id bytea,
  action text NOT NULL,
  acted_by text NOT NULL,
  tenant text,
  message_id text,
  note text,
  CONSTRAINT audit_pkey PRIMARY KEY (seq),
  CONSTRAINT audit_action CHECK (
    action IN ('sign_in', 'reveal_key', 'reveal_derived_keys', 'reveal_outcome', 'retry', 'resend', 'discard')
  ),
  CONSTRAINT audit_by_length CHECK (char_length(acted_by) BETWEEN 1 AND 255)
);

CREATE INDEX audit_entry ON oncekey.audit (entry_id) WHERE entry_id IS NOT NULL;

CREATE INDEX audit_tenant ON oncekey.audit (tenant, seq) WHERE tenant IS NOT NULL;

-- Whose entry it was: the entry itself is purged long before its audit. Rows of older releases have none.
ALTER TABLE oncekey.resolution ADD COLUMN tenant text;

CREATE INDEX resolution_tenant ON oncekey.resolution (tenant, seq) WHERE tenant IS NOT NULL;

-- Entries that nobody but a person moves on have no time for the sweeper, and stood in no index. A request that ends well
-- never touches this one: it costs no WAL, and no update that was HOT stops being so (`state` bounds indexes already).
CREATE INDEX entry_recovery ON oncekey.entry (created_at) WHERE state = 'needs_recovery';
