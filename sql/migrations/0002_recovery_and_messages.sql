-- Recovery without a client, delivery of messages, arrivals that act once, and who settled what.
-- minimum reader: 1

-- sweep_at: when the sweeper looks at an entry that is not in progress; null: only a retry or a person does.
-- settles_at: from when on "nothing happened" may be believed of a captured run; null: nobody can say.
ALTER TABLE oncekey.entry
  ADD COLUMN sweep_at timestamptz,
  ADD COLUMN settles_at timestamptz,
  ADD COLUMN correlation text;

CREATE INDEX entry_sweep ON oncekey.entry (sweep_at) WHERE sweep_at IS NOT NULL;

-- settles_at: from when on "none" may be believed of the call; null: no time was declared for it.
ALTER TABLE oncekey.intent
  ADD COLUMN settles_at timestamptz,
  ADD COLUMN form text,
  ADD CONSTRAINT intent_form CHECK (form IN ('dedupes', 'cancel', 'settles', 'never'));

-- A message is leased by moving available_at into the future under a fence of the relay's own.
ALTER TABLE oncekey.outbox
  ALTER COLUMN entry_id DROP NOT NULL,
  ADD COLUMN delivered_at timestamptz,
  ADD COLUMN fence bytea,
  ADD COLUMN client text,
  ADD COLUMN context bytea,
  ADD COLUMN correlation text,
  ADD COLUMN reason text,
  DROP CONSTRAINT outbox_state,
  ADD CONSTRAINT outbox_state CHECK (state IN ('pending', 'delivered', 'dead')),
  ADD CONSTRAINT outbox_delivered_at CHECK ((state = 'delivered') = (delivered_at IS NOT NULL));

CREATE INDEX outbox_due ON oncekey.outbox (available_at, seq) WHERE state = 'pending' AND order_by IS NULL;

CREATE INDEX outbox_ordered_due ON oncekey.outbox (available_at, seq) WHERE state = 'pending' AND order_by IS NOT NULL;

-- What stands in front of a message in its order: everything earlier that is not delivered.
CREATE INDEX outbox_order ON oncekey.outbox (tenant, order_by, seq) WHERE order_by IS NOT NULL AND state <> 'delivered';

-- For operators, who retry or discard the dead letters of a topic.
CREATE INDEX outbox_dead ON oncekey.outbox (topic) WHERE state = 'dead';

CREATE INDEX outbox_purge ON oncekey.outbox (delivered_at) WHERE state = 'delivered';

-- Arrivals (queue messages, webhooks) whose effect is committed. The primary key alone decides.
CREATE TABLE oncekey.inbox (
  received_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  id bytea NOT NULL,
  tenant text NOT NULL,
  source text NOT NULL,
  delivery text NOT NULL,
  value bytea,
  CONSTRAINT inbox_pkey PRIMARY KEY (id),
  CONSTRAINT inbox_id_length CHECK (octet_length(id) = 32),
  CONSTRAINT inbox_tenant_length CHECK (char_length(tenant) BETWEEN 1 AND 255),
  CONSTRAINT inbox_source_length CHECK (char_length(source) BETWEEN 1 AND 255),
  CONSTRAINT inbox_delivery_length CHECK (char_length(delivery) BETWEEN 1 AND 512)
) WITH (fillfactor = 100, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX inbox_purge ON oncekey.inbox (expires_at);

-- How far each producer of numbered messages has come: one row a producer, however many messages.
CREATE TABLE oncekey.producer (
  moved_at timestamptz NOT NULL,
  epoch bigint NOT NULL,
  sequence bigint NOT NULL,
  id bytea NOT NULL,
  tenant text NOT NULL,
  source text NOT NULL,
  producer text NOT NULL,
  CONSTRAINT producer_pkey PRIMARY KEY (id),
  CONSTRAINT producer_id_length CHECK (octet_length(id) = 32),
  CONSTRAINT producer_epoch CHECK (epoch >= 0),
  CONSTRAINT producer_sequence CHECK (sequence >= 0)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

-- The newest version that was applied to a subject, so that an older state update that arrives late changes nothing.
CREATE TABLE oncekey.subject (
  moved_at timestamptz NOT NULL,
  version bigint NOT NULL,
  id bytea NOT NULL,
  tenant text NOT NULL,
  source text NOT NULL,
  subject text NOT NULL,
  CONSTRAINT subject_pkey PRIMARY KEY (id),
  CONSTRAINT subject_id_length CHECK (octet_length(id) = 32)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

-- Which operations the running sweepers can take up; what lapsed and is in none of these rows is shown to operators.
CREATE TABLE oncekey.sweep_target (
  seen_at timestamptz NOT NULL,
  operation_version integer NOT NULL,
  operation text NOT NULL,
  run_kind text NOT NULL,
  CONSTRAINT sweep_target_pkey PRIMARY KEY (operation, run_kind, operation_version)
) WITH (fillfactor = 50);

-- Who settled an entry by hand, when, and what was known then. Never purged by us.
CREATE TABLE oncekey.resolution (
  seq bigint GENERATED ALWAYS AS IDENTITY,
  resolved_at timestamptz NOT NULL,
  status integer,
  forced boolean NOT NULL,
  entry_id bytea NOT NULL,
  verdict text NOT NULL,
  resolved_by text NOT NULL,
  state_before text NOT NULL,
  reason_before text,
  open_intents text NOT NULL,
  note text,
  CONSTRAINT resolution_pkey PRIMARY KEY (seq),
  CONSTRAINT resolution_verdict CHECK (verdict IN ('succeeded', 'failed', 'released')),
  CONSTRAINT resolution_by_length CHECK (char_length(resolved_by) BETWEEN 1 AND 255)
);

CREATE INDEX resolution_entry ON oncekey.resolution (entry_id);
