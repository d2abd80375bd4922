import { OncekeyError } from "../../core/errors.ts";
import type { SchemaOptions } from "./migrate.ts";
import { checkSchemaName, DEFAULT_SCHEMA, inSchema } from "./statements.ts";

/** Names of existing database roles; a part without a role gets no grants. */
export interface GrantRoles {
  /** The processes that answer requests. */
  readonly api?: string;
  /** Sweeper and relay, and the commands that settle by hand, erase and rotate. An API process that also relays needs these. */
  readonly worker?: string;
  /** Operators and a console that changes nothing: reads everything but what clients sent and were answered, and what messages tell. */
  readonly console?: string;
  /** A console that decides about entries, asks the sweeper, sends messages again and shows what is masked, all audited. */
  readonly operator?: string;
}

const ENGINE_GRANTS = [
  "USAGE ON SCHEMA oncekey",
  "SELECT ON oncekey.migration, oncekey.layout, oncekey.outcome_partition",
  "SELECT, INSERT, UPDATE, DELETE ON oncekey.entry, oncekey.phase, oncekey.intent",
  "SELECT, INSERT ON oncekey.outcome",
  "INSERT ON oncekey.outbox",
  "SELECT, INSERT, UPDATE, DELETE ON oncekey.inbox",
  "SELECT, INSERT, UPDATE ON oncekey.producer, oncekey.subject, oncekey.sweep_target",
  "SELECT, INSERT, UPDATE, DELETE ON oncekey.body",
];

const OUTBOX_COLUMNS =
  "seq, id, topic, tenant, client, entry_id, state, attempts, created_at, available_at, delivered_at, fence, order_by, correlation, reason";

const GRANTS: Record<keyof GrantRoles, readonly string[]> = {
  api: ENGINE_GRANTS,
  worker: [
    ...ENGINE_GRANTS,
    // Erasing takes outcomes out of their partitions, rotating seals them anew; changing tables takes their owner.
    "UPDATE, DELETE ON oncekey.outcome",
    "SELECT, UPDATE, DELETE ON oncekey.outbox",
    // Not UPDATE and DELETE: an audit that its writer can change is none.
    "SELECT, INSERT ON oncekey.resolution",
  ],
  console: [
    "USAGE ON SCHEMA oncekey",
    "SELECT ON oncekey.migration, oncekey.layout, oncekey.outcome_partition",
    "SELECT (created_at, lease_until, not_before, completed_at, expires_at, tombstone_until, attempt, operation_version, status, outcome_gone, id, state, run_kind, tenant, client, operation, key, recovery_point, reason, sweep_at, settles_at, correlation, body_pointer) ON oncekey.entry",
    "SELECT (created_at, lease_until, not_before, completed_at, expires_at, tombstone_until, attempt, operation_version, status, outcome_gone, id, state, run_kind, tenant, client, operation, key, recovery_point, reason, sweep_at, settles_at, correlation, body_pointer) ON oncekey.outcome",
    "SELECT (entry_id, position, kind, name) ON oncekey.phase",
    "SELECT (entry_id, call, generation, state, form, started_at, settles_at) ON oncekey.intent",
    `SELECT (${OUTBOX_COLUMNS}) ON oncekey.outbox`,
    "SELECT (received_at, expires_at, id, tenant, source, delivery) ON oncekey.inbox",
    "SELECT ON oncekey.producer, oncekey.subject, oncekey.sweep_target, oncekey.resolution, oncekey.audit, oncekey.body",
  ],
  operator: [
    "USAGE ON SCHEMA oncekey",
    "SELECT ON oncekey.migration, oncekey.layout, oncekey.outcome_partition, oncekey.sweep_target",
    "SELECT, UPDATE ON oncekey.entry",
    "SELECT ON oncekey.outcome, oncekey.phase, oncekey.intent",
    // Not what messages tell.
    `SELECT (${OUTBOX_COLUMNS}) ON oncekey.outbox`,
    "UPDATE (state, available_at, attempts, fence), DELETE ON oncekey.outbox",
    // Not UPDATE and DELETE, as above.
    "SELECT, INSERT ON oncekey.resolution, oncekey.audit",
  ],
};

/** The least that each part needs, as SQL to run once as the owner of the schema. Raises `oncekey_config_invalid`. */
export function printGrants(roles: GrantRoles, options: SchemaOptions = {}): string {
  const schema = checkSchemaName(options.schema ?? DEFAULT_SCHEMA);
  const parts = (["api", "worker", "console", "operator"] as const).filter((part) => roles[part] !== undefined);
  const lines = parts.flatMap((part) => {
    const role = quotedRole(roles[part] ?? "");
    return GRANTS[part].map((grant) => `GRANT ${inSchema(grant, schema)} TO ${role};\n`);
  });
  return lines.join("");
}

function quotedRole(role: string): string {
  if (role === "" || role.includes("\0")) {
    throw new OncekeyError("oncekey_config_invalid", "A role name is empty or holds NUL. Name an existing role.");
  }
  return `"${role.replaceAll('"', '""')}"`;
}
