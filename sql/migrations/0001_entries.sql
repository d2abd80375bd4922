-- Entries, what is recorded for them, and the outbox.
-- minimum reader: 1
--
-- "oncekey" stands for the configured schema everywhere. A statement ends with a semicolon at the end of a line.
-- "minimum reader" is the oldest release, counted in migrations it knows, that may still work on the migrated schema.

CREATE SCHEMA IF NOT EXISTS oncekey;

CREATE TABLE oncekey.migration (
  number integer NOT NULL PRIMARY KEY,
  name text NOT NULL,
  checksum text NOT NULL,
  minimum_reader integer NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Columns are ordered by alignment (8, 4, 1 bytes, then varying), which saves about 20 bytes a row.
-- The primary key alone decides who runs. There is no index on (tenant, key): it would cost every request about 120
-- bytes of WAL for a question that only an operator asks; `inspect` scans instead.
CREATE TABLE oncekey.entry (
  created_at timestamptz NOT NULL,
  lease_until timestamptz,
  not_before timestamptz,
  completed_at timestamptz,
  expires_at timestamptz,
  tombstone_until timestamptz,
  attempt integer NOT NULL DEFAULT 1,
  operation_version integer NOT NULL,
  status integer,
  outcome_gone boolean NOT NULL DEFAULT false,
  id bytea NOT NULL,
  fence bytea NOT NULL,
  seed bytea NOT NULL,
  fingerprint bytea NOT NULL,
  wire_digest bytea,
  state text NOT NULL,
  run_kind text NOT NULL,
  tenant text NOT NULL,
  client text,
  operation text NOT NULL,
  key text NOT NULL,
  recovery_point text,
  reason text,
  input bytea,
  context bytea,
  outcome bytea,
  CONSTRAINT entry_pkey PRIMARY KEY (id),
  CONSTRAINT entry_id_length CHECK (octet_length(id) = 32),
  CONSTRAINT entry_fence_length CHECK (octet_length(fence) = 16),
  CONSTRAINT entry_seed_length CHECK (octet_length(seed) = 16),
  CONSTRAINT entry_fingerprint_length CHECK (octet_length(fingerprint) BETWEEN 1 AND 128),
  CONSTRAINT entry_tenant_length CHECK (char_length(tenant) BETWEEN 1 AND 255),
  CONSTRAINT entry_client_length CHECK (char_length(client) <= 255),
  CONSTRAINT entry_operation_length CHECK (char_length(operation) BETWEEN 1 AND 255),
  CONSTRAINT entry_key_length CHECK (char_length(key) BETWEEN 1 AND 512),
  CONSTRAINT entry_attempt CHECK (attempt >= 1),
  CONSTRAINT entry_run_kind CHECK (run_kind IN ('transaction', 'phases', 'capture')),
  CONSTRAINT entry_status CHECK (status BETWEEN 100 AND 599),
  CONSTRAINT entry_outcome CHECK ((status IS NOT NULL) = (outcome IS NOT NULL OR outcome_gone)),
  CONSTRAINT entry_tombstone CHECK (tombstone_until >= expires_at),
  CONSTRAINT entry_state CHECK (
    CASE state
      WHEN 'in_progress' THEN lease_until IS NOT NULL AND completed_at IS NULL AND expires_at IS NULL
      WHEN 'needs_recovery' THEN reason IS NOT NULL AND lease_until IS NULL AND completed_at IS NULL AND expires_at IS NULL
      WHEN 'released' THEN lease_until IS NULL AND completed_at IS NULL AND expires_at IS NULL
      WHEN 'succeeded' THEN status IS NOT NULL AND lease_until IS NULL AND completed_at IS NOT NULL AND expires_at IS NOT NULL
      WHEN 'failed' THEN status IS NOT NULL AND lease_until IS NULL AND completed_at IS NOT NULL AND expires_at IS NOT NULL
      ELSE false
    END
  )
) WITH (fillfactor = 100, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

-- For the sweeper. Phases change neither column, so that recording one stays a HOT update.
CREATE INDEX entry_lease ON oncekey.entry (lease_until) WHERE state = 'in_progress';

-- For the purge: the instant at which a row is next to be looked at. A tombstone is not met again before it ends.
CREATE INDEX entry_purge ON oncekey.entry ((CASE WHEN outcome_gone THEN greatest(expires_at, tombstone_until) ELSE expires_at END))
  WHERE expires_at IS NOT NULL;

-- The foreign keys do not cascade, on purpose: deleting an entry that has records is refused unless the statement says
-- that it deletes them too, so that no race can lose what a phase or call has recorded.
CREATE TABLE oncekey.phase (
  position integer NOT NULL,
  entry_id bytea NOT NULL,
  kind text NOT NULL,
  name text NOT NULL,
  value bytea NOT NULL,
  CONSTRAINT phase_pkey PRIMARY KEY (entry_id, position),
  CONSTRAINT phase_entry_fkey FOREIGN KEY (entry_id) REFERENCES oncekey.entry (id),
  CONSTRAINT phase_position CHECK (position >= 0),
  CONSTRAINT phase_kind CHECK (kind IN ('phase', 'call')),
  CONSTRAINT phase_name_length CHECK (char_length(name) BETWEEN 1 AND 255)
);

CREATE TABLE oncekey.intent (
  started_at timestamptz NOT NULL,
  generation integer NOT NULL,
  entry_id bytea NOT NULL,
  call text NOT NULL,
  derived_key text NOT NULL,
  request_digest bytea NOT NULL,
  state text NOT NULL DEFAULT 'open',
  fence bytea NOT NULL,
  CONSTRAINT intent_pkey PRIMARY KEY (entry_id, call, generation),
  CONSTRAINT intent_entry_fkey FOREIGN KEY (entry_id) REFERENCES oncekey.entry (id),
  CONSTRAINT intent_call_length CHECK (char_length(call) BETWEEN 1 AND 255),
  CONSTRAINT intent_generation CHECK (generation >= 1),
  CONSTRAINT intent_derived_key_length CHECK (char_length(derived_key) BETWEEN 1 AND 255),
  CONSTRAINT intent_request_digest_length CHECK (octet_length(request_digest) = 32),
  CONSTRAINT intent_fence_length CHECK (octet_length(fence) = 16),
  CONSTRAINT intent_state CHECK (state IN ('open', 'settled', 'cancelled'))
);

-- Messages outlive their entry: no foreign key. The payload is text, since jsonb would reorder members and lose digits.
CREATE TABLE oncekey.outbox (
  seq bigint GENERATED ALWAYS AS IDENTITY,
  created_at timestamptz NOT NULL,
  available_at timestamptz NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  state text NOT NULL DEFAULT 'pending',
  id text NOT NULL,
  topic text NOT NULL,
  tenant text NOT NULL,
  entry_id bytea NOT NULL,
  key text,
  order_by text,
  payload text NOT NULL,
  CONSTRAINT outbox_pkey PRIMARY KEY (id),
  CONSTRAINT outbox_topic_length CHECK (char_length(topic) BETWEEN 1 AND 255),
  CONSTRAINT outbox_state CHECK (state IN ('pending', 'delivered', 'failed')),
  CONSTRAINT outbox_attempts CHECK (attempts >= 0)
);
