-- Written by scripts/dump-schema.ts: what the migrations make. Do not edit, and do not run: migrate.

CREATE TABLE oncekey.audit (
  acted_at timestamp with time zone NOT NULL,
  seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  entry_id bytea,
  action text NOT NULL,
  acted_by text NOT NULL,
  tenant text,
  message_id text,
  note text,
  CONSTRAINT audit_pkey PRIMARY KEY (seq),
  CONSTRAINT audit_action CHECK ((action = ANY (ARRAY['sign_in'::text, 'reveal_key'::text, 'reveal_derived_keys'::text, 'reveal_outcome'::text, 'retry'::text, 'resend'::text, 'discard'::text]))),
  CONSTRAINT audit_by_length CHECK (((char_length(acted_by) >= 1) AND (char_length(acted_by) <= 255)))
);

CREATE TABLE oncekey.body (
  check_at timestamp with time zone NOT NULL,
  pointer text NOT NULL,
  entry_id bytea NOT NULL,
  CONSTRAINT body_pkey PRIMARY KEY (pointer),
  CONSTRAINT body_entry_id_length CHECK ((octet_length(entry_id) = 32)),
  CONSTRAINT body_pointer_length CHECK (((char_length(pointer) >= 1) AND (char_length(pointer) <= 255)))
);

CREATE TABLE oncekey.entry (
  created_at timestamp with time zone NOT NULL,
  lease_until timestamp with time zone,
  not_before timestamp with time zone,
  completed_at timestamp with time zone,
  expires_at timestamp with time zone,
  tombstone_until timestamp with time zone,
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
  sweep_at timestamp with time zone,
  settles_at timestamp with time zone,
  correlation text,
  body_pointer text,
  CONSTRAINT entry_pkey PRIMARY KEY (id),
  CONSTRAINT entry_attempt CHECK ((attempt >= 1)),
  CONSTRAINT entry_client_length CHECK ((char_length(client) <= 255)),
  CONSTRAINT entry_fence_length CHECK ((octet_length(fence) = 16)),
  CONSTRAINT entry_fingerprint_length CHECK (((octet_length(fingerprint) >= 1) AND (octet_length(fingerprint) <= 128))),
  CONSTRAINT entry_id_length CHECK ((octet_length(id) = 32)),
  CONSTRAINT entry_key_length CHECK (((char_length(key) >= 1) AND (char_length(key) <= 512))),
  CONSTRAINT entry_operation_length CHECK (((char_length(operation) >= 1) AND (char_length(operation) <= 255))),
  CONSTRAINT entry_outcome CHECK (((status IS NOT NULL) = ((outcome IS NOT NULL) OR outcome_gone))),
  CONSTRAINT entry_run_kind CHECK ((run_kind = ANY (ARRAY['transaction'::text, 'phases'::text, 'capture'::text]))),
  CONSTRAINT entry_seed_length CHECK ((octet_length(seed) = 16)),
  CONSTRAINT entry_state CHECK ( CASE state WHEN 'in_progress'::text THEN ((lease_until IS NOT NULL) AND (completed_at IS NULL) AND (expires_at IS NULL)) WHEN 'needs_recovery'::text THEN ((reason IS NOT NULL) AND (lease_until IS NULL) AND (completed_at IS NULL) AND (expires_at IS NULL)) WHEN 'released'::text THEN ((lease_until IS NULL) AND (completed_at IS NULL) AND (expires_at IS NULL)) WHEN 'succeeded'::text THEN ((status IS NOT NULL) AND (lease_until IS NULL) AND (completed_at IS NOT NULL) AND (expires_at IS NOT NULL)) WHEN 'failed'::text THEN ((status IS NOT NULL) AND (lease_until IS NULL) AND (completed_at IS NOT NULL) AND (expires_at IS NOT NULL)) ELSE false END),
  CONSTRAINT entry_status CHECK (((status >= 100) AND (status <= 599))),
  CONSTRAINT entry_tenant_length CHECK (((char_length(tenant) >= 1) AND (char_length(tenant) <= 255))),
  CONSTRAINT entry_tombstone CHECK ((tombstone_until >= expires_at))
) WITH (fillfactor=100,autovacuum_vacuum_scale_factor=0.02,autovacuum_analyze_scale_factor=0.05);

CREATE TABLE oncekey.inbox (
  received_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  id bytea NOT NULL,
  tenant text NOT NULL,
  source text NOT NULL,
  delivery text NOT NULL,
  value bytea,
  CONSTRAINT inbox_pkey PRIMARY KEY (id),
  CONSTRAINT inbox_delivery_length CHECK (((char_length(delivery) >= 1) AND (char_length(delivery) <= 512))),
  CONSTRAINT inbox_id_length CHECK ((octet_length(id) = 32)),
  CONSTRAINT inbox_source_length CHECK (((char_length(source) >= 1) AND (char_length(source) <= 255))),
  CONSTRAINT inbox_tenant_length CHECK (((char_length(tenant) >= 1) AND (char_length(tenant) <= 255)))
) WITH (fillfactor=100,autovacuum_vacuum_scale_factor=0.02);

CREATE TABLE oncekey.intent (
  started_at timestamp with time zone NOT NULL,
  generation integer NOT NULL,
  entry_id bytea NOT NULL,
  call text NOT NULL,
  derived_key text NOT NULL,
  request_digest bytea NOT NULL,
  state text NOT NULL DEFAULT 'open'::text,
  fence bytea NOT NULL,
  settles_at timestamp with time zone,
  form text,
  CONSTRAINT intent_pkey PRIMARY KEY (entry_id, call, generation),
  CONSTRAINT intent_entry_fkey FOREIGN KEY (entry_id) REFERENCES oncekey.entry(id),
  CONSTRAINT intent_call_length CHECK (((char_length(call) >= 1) AND (char_length(call) <= 255))),
  CONSTRAINT intent_derived_key_length CHECK (((char_length(derived_key) >= 1) AND (char_length(derived_key) <= 255))),
  CONSTRAINT intent_fence_length CHECK ((octet_length(fence) = 16)),
  CONSTRAINT intent_form CHECK ((form = ANY (ARRAY['dedupes'::text, 'cancel'::text, 'settles'::text, 'never'::text]))),
  CONSTRAINT intent_generation CHECK ((generation >= 1)),
  CONSTRAINT intent_request_digest_length CHECK ((octet_length(request_digest) = 32)),
  CONSTRAINT intent_state CHECK ((state = ANY (ARRAY['open'::text, 'settled'::text, 'cancelled'::text])))
);

CREATE TABLE oncekey.layout (
  maintained_until timestamp with time zone,
  width_s integer NOT NULL DEFAULT 86400,
  retention_s integer NOT NULL DEFAULT 86400,
  one boolean NOT NULL DEFAULT true,
  guarded boolean NOT NULL DEFAULT false,
  name text NOT NULL DEFAULT 'plain'::text,
  CONSTRAINT layout_pkey PRIMARY KEY (one),
  CONSTRAINT layout_name CHECK ((name = ANY (ARRAY['plain'::text, 'partitioned'::text]))),
  CONSTRAINT layout_one CHECK (one),
  CONSTRAINT layout_retention CHECK ((retention_s >= 1)),
  CONSTRAINT layout_width CHECK ((width_s >= 1))
);

CREATE TABLE oncekey.migration (
  number integer NOT NULL,
  name text NOT NULL,
  checksum text NOT NULL,
  minimum_reader integer NOT NULL,
  applied_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT migration_pkey PRIMARY KEY (number)
);

CREATE TABLE oncekey.outbox (
  seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  created_at timestamp with time zone NOT NULL,
  available_at timestamp with time zone NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  state text NOT NULL DEFAULT 'pending'::text,
  id text NOT NULL,
  topic text NOT NULL,
  tenant text NOT NULL,
  entry_id bytea,
  key text,
  order_by text,
  payload text NOT NULL,
  delivered_at timestamp with time zone,
  fence bytea,
  client text,
  context bytea,
  correlation text,
  reason text,
  CONSTRAINT outbox_pkey PRIMARY KEY (id),
  CONSTRAINT outbox_attempts CHECK ((attempts >= 0)),
  CONSTRAINT outbox_delivered_at CHECK (((state = 'delivered'::text) = (delivered_at IS NOT NULL))),
  CONSTRAINT outbox_state CHECK ((state = ANY (ARRAY['pending'::text, 'delivered'::text, 'dead'::text]))),
  CONSTRAINT outbox_topic_length CHECK (((char_length(topic) >= 1) AND (char_length(topic) <= 255)))
);

CREATE TABLE oncekey.outcome_partition (
  from_at timestamp with time zone NOT NULL,
  to_at timestamp with time zone NOT NULL,
  name text NOT NULL,
  CONSTRAINT outcome_partition_pkey PRIMARY KEY (name),
  CONSTRAINT outcome_partition_span CHECK ((from_at < to_at))
);

CREATE TABLE oncekey.phase (
  position integer NOT NULL,
  entry_id bytea NOT NULL,
  kind text NOT NULL,
  name text NOT NULL,
  value bytea NOT NULL,
  CONSTRAINT phase_pkey PRIMARY KEY (entry_id, "position"),
  CONSTRAINT phase_entry_fkey FOREIGN KEY (entry_id) REFERENCES oncekey.entry(id),
  CONSTRAINT phase_kind CHECK ((kind = ANY (ARRAY['phase'::text, 'call'::text]))),
  CONSTRAINT phase_name_length CHECK (((char_length(name) >= 1) AND (char_length(name) <= 255))),
  CONSTRAINT phase_position CHECK (("position" >= 0))
);

CREATE TABLE oncekey.producer (
  moved_at timestamp with time zone NOT NULL,
  epoch bigint NOT NULL,
  sequence bigint NOT NULL,
  id bytea NOT NULL,
  tenant text NOT NULL,
  source text NOT NULL,
  producer text NOT NULL,
  CONSTRAINT producer_pkey PRIMARY KEY (id),
  CONSTRAINT producer_epoch CHECK ((epoch >= 0)),
  CONSTRAINT producer_id_length CHECK ((octet_length(id) = 32)),
  CONSTRAINT producer_sequence CHECK ((sequence >= 0))
) WITH (fillfactor=80,autovacuum_vacuum_scale_factor=0.02);

CREATE TABLE oncekey.resolution (
  seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  resolved_at timestamp with time zone NOT NULL,
  status integer,
  forced boolean NOT NULL,
  entry_id bytea NOT NULL,
  verdict text NOT NULL,
  resolved_by text NOT NULL,
  state_before text NOT NULL,
  reason_before text,
  open_intents text NOT NULL,
  note text,
  tenant text,
  CONSTRAINT resolution_pkey PRIMARY KEY (seq),
  CONSTRAINT resolution_by_length CHECK (((char_length(resolved_by) >= 1) AND (char_length(resolved_by) <= 255))),
  CONSTRAINT resolution_verdict CHECK ((verdict = ANY (ARRAY['succeeded'::text, 'failed'::text, 'released'::text])))
);

CREATE TABLE oncekey.subject (
  moved_at timestamp with time zone NOT NULL,
  version bigint NOT NULL,
  id bytea NOT NULL,
  tenant text NOT NULL,
  source text NOT NULL,
  subject text NOT NULL,
  CONSTRAINT subject_pkey PRIMARY KEY (id),
  CONSTRAINT subject_id_length CHECK ((octet_length(id) = 32))
) WITH (fillfactor=80,autovacuum_vacuum_scale_factor=0.02);

CREATE TABLE oncekey.sweep_target (
  seen_at timestamp with time zone NOT NULL,
  operation_version integer NOT NULL,
  operation text NOT NULL,
  run_kind text NOT NULL,
  CONSTRAINT sweep_target_pkey PRIMARY KEY (operation, run_kind, operation_version)
) WITH (fillfactor=50);

CREATE INDEX audit_entry ON oncekey.audit USING btree (entry_id) WHERE (entry_id IS NOT NULL);

CREATE INDEX audit_tenant ON oncekey.audit USING btree (tenant, seq) WHERE (tenant IS NOT NULL);

CREATE INDEX body_due ON oncekey.body USING btree (check_at);

CREATE INDEX entry_lease ON oncekey.entry USING btree (lease_until) WHERE (state = 'in_progress'::text);

CREATE INDEX entry_purge ON oncekey.entry USING btree ((
CASE
    WHEN outcome_gone THEN GREATEST(expires_at, tombstone_until)
    ELSE expires_at
END)) WHERE (expires_at IS NOT NULL);

CREATE INDEX entry_recovery ON oncekey.entry USING btree (created_at) WHERE (state = 'needs_recovery'::text);

CREATE INDEX entry_sweep ON oncekey.entry USING btree (sweep_at) WHERE (sweep_at IS NOT NULL);

CREATE INDEX inbox_purge ON oncekey.inbox USING btree (expires_at);

CREATE INDEX outbox_dead ON oncekey.outbox USING btree (topic) WHERE (state = 'dead'::text);

CREATE INDEX outbox_due ON oncekey.outbox USING btree (available_at, seq) WHERE ((state = 'pending'::text) AND (order_by IS NULL));

CREATE INDEX outbox_order ON oncekey.outbox USING btree (tenant, order_by, seq) WHERE ((order_by IS NOT NULL) AND (state <> 'delivered'::text));

CREATE INDEX outbox_ordered_due ON oncekey.outbox USING btree (available_at, seq) WHERE ((state = 'pending'::text) AND (order_by IS NOT NULL));

CREATE INDEX outbox_purge ON oncekey.outbox USING btree (delivered_at) WHERE (state = 'delivered'::text);

CREATE INDEX resolution_entry ON oncekey.resolution USING btree (entry_id);

CREATE INDEX resolution_tenant ON oncekey.resolution USING btree (tenant, seq) WHERE (tenant IS NOT NULL);
