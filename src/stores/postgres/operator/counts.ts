import type { SqlRow } from "../driver-port.ts";
import { boolean, instantOrNull, number, text } from "../rows.ts";
import type { Ask } from "./reading.ts";

/** A count that stops at a bound. */
export interface BoundedCount {
  readonly count: number;
  /** There are more, or may be: the count is a lower bound. */
  readonly more: boolean;
  /** Of the oldest of those counted. */
  readonly oldestAt: Date | null;
}

/** What is counted. */
export type CountName = "unresolved" | "in_progress" | "lapsed" | "purge_due" | "pending" | "dead";

/** Most that is counted of each. */
const MOST = 1_000;

/** Rows of each index that are read where only one tenant's count. */
const MOST_READ = 10_000;

/** What waits, of one tenant or (`null`) of all. Raises as `ask` does. */
export async function waitingCounts(
  ask: Ask,
  tenant: string | null,
): Promise<Readonly<Record<CountName, BoundedCount>>> {
  const rows = await ask("console_counts", [tenant, tenant === null ? MOST : MOST_READ, MOST]);
  const of = (name: CountName): BoundedCount => {
    const row = rows.find((one) => one.name === name);
    if (row === undefined) return { count: 0, more: false, oldestAt: null };
    return { count: number(row, "entries"), more: boolean(row, "more"), oldestAt: instantOrNull(row, "oldest_at") };
  };
  return {
    unresolved: of("unresolved"),
    in_progress: of("in_progress"),
    lapsed: of("lapsed"),
    purge_due: of("purge_due"),
    pending: of("pending"),
    dead: of("dead"),
  };
}

/** A table as it lies on disk. */
export interface TableSize {
  readonly name: string;
  /** With indexes, TOAST and partitions. */
  readonly bytes: number;
  /** As the last analysis counted them. */
  readonly rows: number;
}

/** The tables of the schema. Raises as `ask` does. */
export async function tableSizes(ask: Ask): Promise<readonly TableSize[]> {
  return (await ask("console_tables", [])).map((row) => ({
    name: text(row, "name"),
    bytes: number(row, "bytes"),
    rows: number(row, "rows"),
  }));
}

/** A sweeper's operation, a migration, or the layout by its name. */
export interface UpkeepFact {
  readonly kind: "sweeper" | "migration" | "layout";
  readonly name: string;
  readonly runKind: string | null;
  /** The operation's version, or the migration's number; of the layout 0. */
  readonly number: number;
  readonly at: Date | null;
}

/** What sweepers have said lately that they take up, which migrations were applied, and the layout. Raises as `ask` does. */
export async function upkeepFacts(ask: Ask): Promise<readonly UpkeepFact[]> {
  return (await ask("console_upkeep", [])).map((row: SqlRow) => ({
    kind: text(row, "kind") as UpkeepFact["kind"],
    name: text(row, "name"),
    runKind: row.run_kind === null ? null : text(row, "run_kind"),
    number: number(row, "number"),
    at: instantOrNull(row, "at"),
  }));
}
