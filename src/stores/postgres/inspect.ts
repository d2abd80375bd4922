import type { EntryState, RunKind } from "../../core/entry.ts";
import type { Driver, SqlRow } from "./driver-port.ts";
import { ownFailure } from "./errors.ts";
import type { SchemaOptions } from "./migrate.ts";
import { boolean, instantOrNull, number, text, textOrNull } from "./rows.ts";
import { DEFAULT_SCHEMA, statementRunner } from "./statements.ts";

/** Whose entries: the key as stored (raw, or digest and prefix), and optionally one tenant and operation. */
export interface InspectQuery {
  readonly key: string;
  readonly tenant?: string;
  readonly operation?: string;
}

/** An entry as an operator sees it: nothing of what the client sent or was answered. */
export interface InspectedEntry {
  /** Lower-case hex, as `oncekey resolve` takes it. */
  readonly id: string;
  readonly tenant: string;
  readonly client: string | null;
  readonly operation: string;
  readonly key: string;
  readonly runKind: RunKind;
  readonly operationVersion: number;
  readonly state: EntryState;
  readonly attempt: number;
  readonly recoveryPoint: string | null;
  readonly reason: string | null;
  readonly status: number | null;
  readonly outcomeGone: boolean;
  readonly createdAt: Date;
  readonly leaseUntil: Date | null;
  readonly notBefore: Date | null;
  readonly completedAt: Date | null;
  readonly expiresAt: Date | null;
  readonly tombstoneUntil: Date | null;
}

/**
 * The entries of a key, oldest first, at most 1,000. Scans the table: an index on keys would cost every request, and
 * only operators ask. Raises `StoreFailure`.
 */
export async function inspectEntries<Tx>(
  driver: Driver<Tx>,
  query: InspectQuery,
  options: SchemaOptions = {},
): Promise<InspectedEntry[]> {
  const run = statementRunner(driver, options.schema ?? DEFAULT_SCHEMA);
  try {
    const rows = await run("inspect", [query.key, query.tenant ?? null, query.operation ?? null]);
    return rows.map(inspectedEntry);
  } catch (error) {
    throw ownFailure(error);
  }
}

function inspectedEntry(row: SqlRow): InspectedEntry {
  return {
    id: text(row, "id"),
    tenant: text(row, "tenant"),
    client: textOrNull(row, "client"),
    operation: text(row, "operation"),
    key: text(row, "key"),
    runKind: text(row, "run_kind") as RunKind,
    operationVersion: number(row, "operation_version"),
    state: text(row, "state") as EntryState,
    attempt: number(row, "attempt"),
    recoveryPoint: textOrNull(row, "recovery_point"),
    reason: textOrNull(row, "reason"),
    status: row.status === null ? null : number(row, "status"),
    outcomeGone: boolean(row, "outcome_gone"),
    createdAt: new Date(number(row, "created_at")),
    leaseUntil: instantOrNull(row, "lease_until"),
    notBefore: instantOrNull(row, "not_before"),
    completedAt: instantOrNull(row, "completed_at"),
    expiresAt: instantOrNull(row, "expires_at"),
    tombstoneUntil: instantOrNull(row, "tombstone_until"),
  };
}
