import type { StoredEntry } from "../../core/entry.ts";
import type { SweepTarget } from "../../core/store.ts";
import { claimableAt, type EntryRow, isForgettable, storedEntry } from "./entry-row.ts";
import { copied, putEntry, type Tables } from "./tables.ts";

/** Entries in progress that may be claimed by now and that one of the targets fits, oldest lapse first. */
export function lapsedEntries(tables: Tables, targets: readonly SweepTarget[], limit: number): StoredEntry[] {
  const now = tables.now();
  const isResumable = (row: EntryRow) => row.runKind !== "phases" || row.input !== null;
  const isWanted = (row: EntryRow) => isResumable(row) && targets.some((target) => fits(row, target));
  return [...tables.entries.values()]
    .filter((row) => row.state === "in_progress" && claimableAt(row) <= now && isWanted(row))
    .toSorted((a, b) => claimableAt(a) - claimableAt(b) || a.createdAt - b.createdAt)
    .slice(0, limit)
    .map((row) => copied(storedEntry(row, now)));
}

/** Deletes, or turns into tombstones, what is expired; rows that a transaction holds are left for the next time. */
export function purgeEntries(tables: Tables, limit: number): number {
  const now = tables.now();
  let purged = 0;
  for (const [key, row] of [...tables.entries]) {
    if (purged === limit) break;
    if (row.expiresAt === null || row.expiresAt > now || tables.locks.isLocked(key)) continue;
    if (isForgettable(row, now)) putEntry(tables, key, null);
    else if (row.outcomeGone) continue;
    else putEntry(tables, key, { ...row, outcome: null, outcomeGone: true });
    purged += 1;
  }
  return purged;
}

function fits(row: EntryRow, target: SweepTarget): boolean {
  return (
    row.operation === target.operation &&
    row.runKind === target.runKind &&
    row.operationVersion <= target.operationVersion
  );
}
