import type { SeenEntry, SweepTarget, TakenEntry, UnknownMark } from "../../core/store.ts";
import { claimableAt, type EntryRow, isForgettable, storedEntry, takenOver, unknownRow } from "./entry-row.ts";
import { copied, entryKey, putEntry, type Tables } from "./tables.ts";

/** Takes over what is due of a target, oldest first; rows that a transaction holds are left for the next time. */
export function takeDueEntries(tables: Tables, target: SweepTarget, limit: number, leaseMs: number): TakenEntry[] {
  const now = tables.now();
  const isResumable = (row: EntryRow) => row.runKind !== "phases" || row.input !== null;
  return freeRows(tables, target)
    .filter((row) => isResumable(row) && (dueAt(row) ?? Infinity) <= now && claimableAt(row) <= now)
    .toSorted((a, b) => (dueAt(a) ?? 0) - (dueAt(b) ?? 0) || a.createdAt - b.createdAt)
    .slice(0, limit)
    .map((row) => {
      const taken = takenOver(row, tables.newFence(), leaseMs, now);
      putEntry(tables, entryKey(row.id), taken);
      const { id, fence, operation } = taken;
      const { claimableInMs, settlesInMs } = storedEntry(row, now).clock;
      const from = row.state as SeenEntry["state"];
      const idleMs = -claimableInMs;
      return copied({ entry: storedEntry(taken, now), id, fence, operation, from, idleMs, settlesInMs });
    });
}

/** Marks captured entries of a target whose lease lapsed, oldest first, keeping their fences. */
export function markLapsedEntries(
  tables: Tables,
  target: SweepTarget,
  mark: Omit<UnknownMark, "provisional">,
  limit: number,
): number {
  const now = tables.now();
  const lapsed = freeRows(tables, target)
    .filter((row) => row.runKind === "capture" && row.state === "in_progress" && claimableAt(row) <= now)
    .toSorted((a, b) => claimableAt(a) - claimableAt(b))
    .slice(0, limit);
  for (const row of lapsed) putEntry(tables, entryKey(row.id), unknownRow(row, { ...mark, provisional: null }, now));
  return lapsed.length;
}

/** Notes that a running sweeper can take these up. */
export function announceTargets(tables: Tables, targets: readonly SweepTarget[]): void {
  for (const { operation, runKind, operationVersion } of targets) {
    const key = JSON.stringify([operation, runKind, operationVersion]);
    tables.targets.set(key, { operation, runKind, operationVersion, seenAt: tables.now() });
  }
}

/** Deletes, or turns into tombstones, what is expired; rows that a transaction holds are left for the next time. */
export function purgeEntries(tables: Tables, limit: number): number {
  const now = tables.now();
  let purged = 0;
  for (const [key, row] of [...tables.entries]) {
    if (purged === limit) break;
    if (row.expiresAt === null || row.expiresAt > now || tables.locks.isLocked(key)) continue;
    if (!isForgettable(row, now) && row.outcomeGone) continue;
    putEntry(tables, key, isForgettable(row, now) ? null : tombstone(row));
    purged += 1;
  }
  return purged;
}

/** Identity and fingerprint only. */
function tombstone(row: EntryRow): EntryRow {
  return { ...row, outcome: null, outcomeGone: true, input: null, context: null, records: [], intents: [] };
}

/** When the sweeper may take an entry; `null`: never. Captured runs in progress are marked first. */
function dueAt(row: EntryRow): number | null {
  if (row.state !== "in_progress") return row.sweepAt;
  return row.runKind === "capture" ? null : claimableAt(row);
}

function freeRows(tables: Tables, target: SweepTarget): EntryRow[] {
  return [...tables.entries].flatMap(([key, row]) => (fits(row, target) && !tables.locks.isLocked(key) ? [row] : []));
}

function fits(row: EntryRow, target: SweepTarget): boolean {
  return (
    row.operation === target.operation &&
    row.runKind === target.runKind &&
    row.operationVersion <= target.operationVersion
  );
}
