import type { StoredEntry } from "../../core/entry.ts";
import { OncekeyError } from "../../core/errors.ts";
import type { Run } from "./committing.ts";
import type { SqlRow } from "./driver-port.ts";
import { boolean, storedEntry } from "./rows.ts";
import type { StatementName } from "./statements.ts";

/**
 * What the last look-up told of the layout. It only chooses between statements that are right in both: a process that has
 * not heard of a change stores where the other layout would, which every look-up finds.
 */
export interface LayoutSeen {
  /** Outcomes may lie in partitions: look there, too. */
  guarded: boolean;
  /** Outcomes are to go into partitions. */
  apart: boolean;
}

/** Before the first look-up: the plain layout, which costs nothing to begin with. */
export const nothingSeen = (): LayoutSeen => ({ guarded: false, apart: false });

/** Takes over what a row of read.sql and its kin tells of the layout. */
export function noteLayout(seen: LayoutSeen, row: SqlRow): void {
  seen.guarded = boolean(row, "guarded");
  seen.apart = boolean(row, "apart");
}

/**
 * The entry of an identity, wherever it lies. Absent is only what the same instant says is nowhere: where the table of
 * entries has nothing while there are partitions, these are asked. Raises `oncekey_store_broken` where the layout's row is
 * gone.
 */
export async function readEntry(run: Run, seen: LayoutSeen, id: Uint8Array): Promise<StoredEntry | null> {
  const looked: StatementName = seen.guarded ? "read_apart" : "read";
  const row = theRow(await run(looked, [id]));
  noteLayout(seen, row);
  if (row.id !== null) return storedEntry(row);
  if (looked === "read_apart" || !seen.guarded) return null;
  const apart = theRow(await run("read_apart", [id]));
  return apart.id === null ? null : storedEntry(apart);
}

function theRow(rows: readonly SqlRow[]): SqlRow {
  if (rows[0] !== undefined) return rows[0];
  throw new OncekeyError(
    "oncekey_store_broken",
    "The row of the layout table is missing, so that it cannot be told where outcomes lie. Nothing was changed; put it back: INSERT INTO layout DEFAULT VALUES.",
  );
}
