import { ENTRY_STATES, type EntryState } from "../../core/entry.ts";
import type { Driver, SqlRow } from "./driver-port.ts";
import { ownFailure } from "./errors.ts";
import type { SchemaOptions } from "./migrate.ts";
import { number } from "./rows.ts";
import { DEFAULT_SCHEMA, statementRunner } from "./statements.ts";

/** What an operator sees first. Ages in milliseconds, sizes in bytes with indexes and TOAST. */
export interface StoreStatus {
  readonly entries: Readonly<Record<EntryState, number>>;
  /** Age of the oldest entry that is in progress, or `null`. */
  readonly oldestInProgressMs: number | null;
  /** In progress, but the lease is over: the sweeper's work. */
  readonly lapsed: number;
  /** Retention is over: the purge's work. */
  readonly expired: number;
  readonly pendingMessages: number;
  readonly bytes: { readonly entry: number; readonly phase: number; readonly intent: number; readonly outbox: number };
}

/** Counts and sizes. Reads the whole table of entries: for operators, not for every scrape. Raises `StoreFailure`. */
export async function storeStatus<Tx>(driver: Driver<Tx>, options: SchemaOptions = {}): Promise<StoreStatus> {
  const run = statementRunner(driver, options.schema ?? DEFAULT_SCHEMA);
  try {
    return statusOf(await run("status", []), (await run("size", []))[0] ?? {});
  } catch (error) {
    throw ownFailure(error);
  }
}

function statusOf(states: readonly SqlRow[], size: SqlRow): StoreStatus {
  const find = (state: EntryState) => states.find((row) => row.state === state);
  const count = (state: EntryState) => number(find(state) ?? { entries: 0 }, "entries");
  const sum = (column: string) => states.reduce((total, row) => total + number(row, column), 0);
  const running = find("in_progress");
  return {
    entries: Object.fromEntries(ENTRY_STATES.map((state) => [state, count(state)])) as Record<EntryState, number>,
    oldestInProgressMs: running === undefined ? null : number(running, "oldest_age_ms"),
    lapsed: sum("lapsed"),
    expired: sum("expired"),
    pendingMessages: number(size, "pending_messages"),
    bytes: {
      entry: number(size, "entry_bytes"),
      phase: number(size, "phase_bytes"),
      intent: number(size, "intent_bytes"),
      outbox: number(size, "outbox_bytes"),
    },
  };
}
