import { ENTRY_STATES, type EntryState, type RunKind } from "../../core/entry.ts";
import type { WaitingMessages } from "../../core/outbox.ts";
import type { Driver, SqlRow } from "./driver-port.ts";
import { ownFailure } from "./errors.ts";
import { type StoreLayout, storeLayout } from "./layout.ts";
import type { SchemaOptions } from "./migrate.ts";
import { waitingMessages } from "./outbox.ts";
import { number, numberOrNull, text } from "./rows.ts";
import { DEFAULT_SCHEMA, statementRunner } from "./statements.ts";

/** What an operator sees first. Ages in milliseconds, sizes in bytes with indexes and TOAST. */
export interface StoreStatus {
  /** The last migration that was applied: may be newer than this version, where the migration says that it still fits. */
  readonly schemaVersion: number;
  readonly entries: Readonly<Record<EntryState, number>>;
  /** Age of the oldest entry that is in progress, or `null`. */
  readonly oldestInProgressMs: number | null;
  /** In progress, but the lease is over: the sweeper's work. */
  readonly lapsed: number;
  /** Retention is over: the purge's work. */
  readonly expired: number;
  /** Entries in `needs_recovery`, by operation and reason, the most first; at most 100 groups. */
  readonly recovery: readonly RecoveryGroup[];
  /** Entries that are due, and that no sweeper seen in the last minute can take up; at most 100 groups. */
  readonly orphaned: readonly OrphanedGroup[];
  readonly pendingMessages: number;
  /** Messages that are not delivered, by topic and state. */
  readonly messages: readonly WaitingMessages[];
  readonly layout: StoreLayout;
  readonly bytes: {
    readonly entry: number;
    /** All partitions of outcomes together. */
    readonly outcome: number;
    readonly phase: number;
    readonly intent: number;
    readonly outbox: number;
    readonly inbox: number;
  };
}

/** Entries of one operation that need recovery for one reason. */
export interface RecoveryGroup {
  readonly operation: string;
  readonly reason: string;
  readonly count: number;
  /** Milliseconds since the oldest of them was first claimed. */
  readonly oldestMs: number;
  /** A few of them, the oldest first, in hex: what `oncekey resolve` takes. */
  readonly ids: readonly string[];
  /** Milliseconds until the sweeper asks next about one of them (0 or less: now); `null`: only a retry or a person does. */
  readonly sweepInMs: number | null;
}

/** Due entries of one operation, kind and version. */
export interface OrphanedGroup {
  readonly operation: string;
  readonly runKind: RunKind;
  readonly operationVersion: number;
  readonly count: number;
  /** Milliseconds since the oldest of them was first claimed. */
  readonly oldestMs: number;
}

/** Counts and sizes. Reads the whole table of entries: for operators, not for every scrape. Raises `StoreFailure`. */
export async function storeStatus<Tx>(driver: Driver<Tx>, options: SchemaOptions = {}): Promise<StoreStatus> {
  const run = statementRunner(driver, options.schema ?? DEFAULT_SCHEMA);
  try {
    const counts = statusOf(await run("status", []), (await run("size", []))[0] ?? {});
    const messages = (await run("outbox_waiting", [])).map(waitingMessages);
    const pending = messages.filter(({ state }) => state === "pending");
    return {
      ...counts,
      messages,
      pendingMessages: pending.reduce((total, { count }) => total + count, 0),
      recovery: (await run("recovery_groups", [])).map(recoveryGroup),
      orphaned: (await run("orphaned_groups", [])).map(orphanedGroup),
      layout: await storeLayout(driver, options),
    };
  } catch (error) {
    throw ownFailure(error);
  }
}

type Counts = Omit<StoreStatus, "recovery" | "orphaned" | "layout" | "messages" | "pendingMessages">;

function statusOf(states: readonly SqlRow[], size: SqlRow): Counts {
  const find = (state: EntryState) => states.find((row) => row.state === state);
  const count = (state: EntryState) => number(find(state) ?? { entries: 0 }, "entries");
  const sum = (column: string) => states.reduce((total, row) => total + number(row, column), 0);
  const running = find("in_progress");
  return {
    schemaVersion: number(size, "schema_version"),
    entries: Object.fromEntries(ENTRY_STATES.map((state) => [state, count(state)])) as Record<EntryState, number>,
    oldestInProgressMs: running === undefined ? null : number(running, "oldest_age_ms"),
    lapsed: sum("lapsed"),
    expired: sum("expired"),
    bytes: {
      entry: number(size, "entry_bytes"),
      outcome: number(size, "outcome_bytes"),
      phase: number(size, "phase_bytes"),
      intent: number(size, "intent_bytes"),
      outbox: number(size, "outbox_bytes"),
      inbox: number(size, "inbox_bytes"),
    },
  };
}

function recoveryGroup(row: SqlRow): RecoveryGroup {
  return {
    operation: text(row, "operation"),
    reason: text(row, "reason"),
    count: number(row, "entries"),
    oldestMs: number(row, "oldest_ms"),
    ids: text(row, "ids").split(" "),
    sweepInMs: numberOrNull(row, "sweep_in_ms"),
  };
}

function orphanedGroup(row: SqlRow): OrphanedGroup {
  return {
    operation: text(row, "operation"),
    runKind: text(row, "run_kind") as RunKind,
    operationVersion: number(row, "operation_version"),
    count: number(row, "entries"),
    oldestMs: number(row, "oldest_ms"),
  };
}
