import type { EntryState } from "../../core/entry.ts";
import { idBytes } from "../../core/identity.ts";
import type { Intent, RecoverForm } from "../../core/intent.ts";
import type { Resolution } from "../../core/resolution.ts";
import type { Driver, SqlRow } from "./driver-port.ts";
import { ownFailure } from "./errors.ts";
import type { SchemaOptions } from "./migrate.ts";
import { boolean, instant, number, numberOrNull, text, textOrNull } from "./rows.ts";
import { DEFAULT_SCHEMA, type StatementName, statementRunner } from "./statements.ts";

/** What an entry has recorded, without the values: these hold what clients sent and other systems answered. */
export interface RecordedSummary {
  readonly phases: readonly { readonly position: number; readonly kind: "phase" | "call"; readonly name: string }[];
  readonly intents: readonly {
    readonly call: string;
    readonly generation: number;
    readonly state: Intent["state"];
    /** `null`: written by a release that did not store it. */
    readonly form: RecoverForm | null;
    readonly ageMs: number;
    /** Milliseconds until "none" may be believed of it (0 or less: now); `null`: no time was declared. */
    readonly settlesInMs: number | null;
  }[];
}

/** One row of the audit: who settled the entry by hand, when, and what was known then. */
export interface ResolutionRecord {
  readonly verdict: Resolution["verdict"];
  /** The outcome's status; `null` where it was released. */
  readonly status: number | null;
  /** Whether it was decided while something sent could still land. */
  readonly forced: boolean;
  readonly by: string;
  readonly note: string | null;
  readonly stateBefore: EntryState;
  readonly reasonBefore: string | null;
  /** The intents that were open then. */
  readonly openIntents: readonly { readonly call: string; readonly generation: number; readonly ageMs: number }[];
  readonly resolvedAt: Date;
}

/**
 * Phases and calls by position, intents by call and generation. Reads only columns that the console's role may see.
 * `id` is the entry's, in hex. Raises `StoreFailure`.
 */
export async function recordedSummary<Tx>(
  driver: Driver<Tx>,
  id: string,
  options: SchemaOptions = {},
): Promise<RecordedSummary> {
  return recordedOf(await ofEntry(driver, options, "recorded", id));
}

/** The summary of recorded.sql's rows. */
export function recordedOf(rows: readonly SqlRow[]): RecordedSummary {
  const isIntent = (row: SqlRow) => row.kind === "intent";
  return {
    phases: rows
      .filter((row) => !isIntent(row))
      .map((row) => ({
        position: number(row, "position"),
        kind: text(row, "kind") as "phase" | "call",
        name: text(row, "name"),
      })),
    intents: rows.filter(isIntent).map((row) => ({
      call: text(row, "name"),
      generation: number(row, "generation"),
      state: text(row, "state") as Intent["state"],
      form: textOrNull(row, "form") as RecoverForm | null,
      ageMs: number(row, "age_ms"),
      settlesInMs: numberOrNull(row, "settles_in_ms"),
    })),
  };
}

/** The audit of an entry, oldest first. `id` is the entry's, in hex. Raises `StoreFailure`. */
export async function entryResolutions<Tx>(
  driver: Driver<Tx>,
  id: string,
  options: SchemaOptions = {},
): Promise<ResolutionRecord[]> {
  return (await ofEntry(driver, options, "resolutions", id)).map(resolutionRecord);
}

/** The record of a row of resolutions.sql. */
export function resolutionRecord(row: SqlRow): ResolutionRecord {
  return {
    verdict: text(row, "verdict") as Resolution["verdict"],
    status: numberOrNull(row, "status"),
    forced: boolean(row, "forced"),
    by: text(row, "resolved_by"),
    note: textOrNull(row, "note"),
    stateBefore: text(row, "state_before") as EntryState,
    reasonBefore: textOrNull(row, "reason_before"),
    openIntents: JSON.parse(text(row, "open_intents")) as ResolutionRecord["openIntents"],
    resolvedAt: instant(row, "resolved_at"),
  };
}

async function ofEntry<Tx>(
  driver: Driver<Tx>,
  options: SchemaOptions,
  name: StatementName,
  id: string,
): Promise<readonly SqlRow[]> {
  const run = statementRunner(driver, options.schema ?? DEFAULT_SCHEMA);
  try {
    return await run(name, [idBytes(id)]);
  } catch (error) {
    throw ownFailure(error);
  }
}
