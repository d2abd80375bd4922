import type { EntryState, RunKind } from "../../core/entry.ts";
import { idBytes } from "../../core/identity.ts";
import type { Driver, SqlParameter, SqlRow } from "./driver-port.ts";
import { ownFailure } from "./errors.ts";
import type { SchemaOptions } from "./migrate.ts";
import { boolean, instant, instantOrNull, number, text, textOrNull } from "./rows.ts";
import { DEFAULT_SCHEMA, type StatementName, statementRunner } from "./statements.ts";

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
  /** When the sweeper looks at it, where it is not in progress; `null`: only a retry or a person does. */
  readonly sweepAt: Date | null;
  /** From when on "nothing happened" may be believed of it; `null`: nobody can say. */
  readonly settlesAt: Date | null;
  /** What ties it to its caller's logs. */
  readonly correlation: string | null;
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
  return inspected(driver, options, "inspect", [query.key, query.tenant ?? null, query.operation ?? null]);
}

/** The entries whose id begins with these lower-case hex digits, at most two, which shows whether it is one. Raises `StoreFailure`. */
export async function entriesById<Tx>(
  driver: Driver<Tx>,
  idPrefix: string,
  options: SchemaOptions = {},
): Promise<InspectedEntry[]> {
  const last = idPrefix.padEnd(64, "f");
  return inspected(driver, options, "inspect_id", [idBytes(idPrefix.padEnd(64, "0")), idBytes(last)]);
}

async function inspected<Tx>(
  driver: Driver<Tx>,
  options: SchemaOptions,
  name: StatementName,
  parameters: readonly SqlParameter[],
): Promise<InspectedEntry[]> {
  const run = statementRunner(driver, options.schema ?? DEFAULT_SCHEMA);
  try {
    return (await run(name, parameters)).map(inspectedEntry);
  } catch (error) {
    throw ownFailure(error);
  }
}

/** The entry of a row of inspect.sql and its kin. */
export function inspectedEntry(row: SqlRow): InspectedEntry {
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
    createdAt: instant(row, "created_at"),
    leaseUntil: instantOrNull(row, "lease_until"),
    notBefore: instantOrNull(row, "not_before"),
    completedAt: instantOrNull(row, "completed_at"),
    expiresAt: instantOrNull(row, "expires_at"),
    tombstoneUntil: instantOrNull(row, "tombstone_until"),
    sweepAt: instantOrNull(row, "sweep_at"),
    settlesAt: instantOrNull(row, "settles_at"),
    correlation: textOrNull(row, "correlation"),
  };
}
