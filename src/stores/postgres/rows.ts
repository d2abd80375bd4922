import type { Completion } from "../../core/completion.ts";
import type { EntryState, NewEntry, RunKind, StoredEntry } from "../../core/entry.ts";
import { OncekeyError } from "../../core/errors.ts";
import type { Intent, Journal, JournalRecord } from "../../core/intent.ts";
import type { StoredOutcome } from "../../core/stored-outcome.ts";
import type { SqlParameter, SqlRow } from "./driver-port.ts";

/** Parameters 1 to 14 of claim.sql and insert_finished.sql. */
export function entryParameters(entry: NewEntry): SqlParameter[] {
  return [
    entry.id,
    entry.tenant,
    entry.client,
    entry.operation,
    entry.key,
    entry.runKind,
    entry.operationVersion,
    entry.fingerprint,
    entry.wireDigest,
    entry.fence,
    entry.seed,
    entry.input,
    entry.context,
    entry.correlation,
  ];
}

/** State, status, outcome, body pointer, retention and tombstone, in the order that the finishing statements take them. */
export function completionParameters({ state, outcome, retentionMs, tombstoneMs }: Completion): SqlParameter[] {
  return [state, outcome.status, outcome.content, outcome.pointer, retentionMs, tombstoneMs];
}

/** The entry of a row with the entry's columns (read.sql). */
export function storedEntry(row: SqlRow): StoredEntry {
  return {
    ...newEntry(row),
    state: text(row, "state") as EntryState,
    attempt: number(row, "attempt"),
    recoveryPoint: textOrNull(row, "recovery_point"),
    reason: textOrNull(row, "reason"),
    outcome: outcome(row),
    outcomeGone: boolean(row, "outcome_gone"),
    createdAt: instant(row, "created_at"),
    completedAt: instantOrNull(row, "completed_at"),
    expiresAt: instantOrNull(row, "expires_at"),
    clock: {
      ageMs: number(row, "age_ms"),
      claimableInMs: number(row, "claimable_in_ms"),
      expired: boolean(row, "expired"),
      tombstoned: boolean(row, "tombstoned"),
      sweepInMs: numberOrNull(row, "sweep_in_ms"),
      settlesInMs: numberOrNull(row, "settles_in_ms"),
    },
  };
}

/** The entry of the first row with the entry's columns; `null`: there is none. */
export function firstEntry(rows: readonly SqlRow[]): StoredEntry | null {
  return rows[0] === undefined ? null : storedEntry(rows[0]);
}

function newEntry(row: SqlRow): NewEntry {
  return {
    id: bytes(row, "id"),
    tenant: text(row, "tenant"),
    client: textOrNull(row, "client"),
    operation: text(row, "operation"),
    key: text(row, "key"),
    runKind: text(row, "run_kind") as RunKind,
    operationVersion: number(row, "operation_version"),
    fingerprint: bytes(row, "fingerprint"),
    wireDigest: bytesOrNull(row, "wire_digest"),
    fence: bytes(row, "fence"),
    seed: bytes(row, "seed"),
    input: bytesOrNull(row, "input"),
    context: bytesOrNull(row, "context"),
    correlation: textOrNull(row, "correlation"),
  };
}

function outcome(row: SqlRow): StoredOutcome | null {
  const content = bytesOrNull(row, "outcome");
  if (content === null) return null;
  return { status: number(row, "status"), content, pointer: textOrNull(row, "body_pointer") };
}

/** Records and intents of journal.sql's rows. */
export function storedJournal(rows: readonly SqlRow[]): Journal {
  const isIntent = (row: SqlRow) => row.kind === "intent";
  return {
    records: rows.filter((row) => !isIntent(row)).map(journalRecord),
    intents: rows.filter(isIntent).map((row) => storedIntent({ ...row, call: row.name })),
  };
}

function journalRecord(row: SqlRow): JournalRecord {
  return {
    position: number(row, "position"),
    kind: text(row, "kind") as JournalRecord["kind"],
    name: text(row, "name"),
    value: bytes(row, "value"),
  };
}

/** The intent of open_intent.sql's row. */
export function storedIntent(row: SqlRow): Intent {
  return {
    call: text(row, "call"),
    generation: number(row, "generation"),
    derivedKey: text(row, "derived_key"),
    requestDigest: bytes(row, "request_digest"),
    state: text(row, "state") as Intent["state"],
    form: textOrNull(row, "form") as Intent["form"],
    ageMs: number(row, "age_ms"),
    settlesInMs: numberOrNull(row, "settles_in_ms"),
  };
}

// As PostgreSQL writes numbers. Number() also takes blanks around them, hexadecimals, and empty text for 0.
const NUMBER_TEXT = /^-?(\d+(\.\d+)?(e[-+]?\d+)?|Infinity)$/;

/** A number column; int8 travels as text. */
export function number(row: SqlRow, column: string): number {
  const value = row[column];
  const isNumber =
    typeof value === "number" || typeof value === "bigint" || (typeof value === "string" && NUMBER_TEXT.test(value));
  const asNumber = isNumber ? Number(value) : NaN;
  if (Number.isNaN(asNumber)) throw unreadable(column, "a number");
  return asNumber;
}

/** A number column that may be null. */
export function numberOrNull(row: SqlRow, column: string): number | null {
  return row[column] === null ? null : number(row, column);
}

/** A text column. */
export function text(row: SqlRow, column: string): string {
  const value = row[column];
  if (typeof value !== "string") throw unreadable(column, "text");
  return value;
}

/** A text column that may be null. */
export function textOrNull(row: SqlRow, column: string): string | null {
  return row[column] === null ? null : text(row, column);
}

/** An instant, read as milliseconds since the epoch. */
export function instant(row: SqlRow, column: string): Date {
  const read = new Date(number(row, column));
  // timestamptz knows infinity, and years that a Date does not.
  if (Number.isNaN(read.getTime())) throw unreadable(column, "an instant that a Date can hold");
  return read;
}

/** An instant, read as milliseconds since the epoch, that may be null. */
export function instantOrNull(row: SqlRow, column: string): Date | null {
  return row[column] === null ? null : instant(row, column);
}

/** A boolean column. */
export function boolean(row: SqlRow, column: string): boolean {
  const value = row[column];
  if (typeof value !== "boolean") throw unreadable(column, "a boolean");
  return value;
}

/** A bytea column. */
export function bytes(row: SqlRow, column: string): Uint8Array {
  const value = row[column];
  if (!(value instanceof Uint8Array)) throw unreadable(column, "bytes");
  // A plain view: a Buffer's slice() shares memory and its JSON form differs, which would surprise whoever compares.
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

/** A bytea column that may be null. */
export function bytesOrNull(row: SqlRow, column: string): Uint8Array | null {
  return row[column] === null ? null : bytes(row, column);
}

function unreadable(column: string, expected: string): OncekeyError {
  return new OncekeyError(
    "oncekey_store_broken",
    `The driver did not return ${expected} for column ${column}. Nothing was changed by reading it; take out type parsers or transforms that change how the driver returns columns.`,
  );
}
