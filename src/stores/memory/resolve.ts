import { decidedCompletion, type Resolution, type Resolved, settlesIn } from "../../core/resolution.ts";
import { claimableAt, completedRow, type EntryRow, isForgettable, takenOver } from "./entry-row.ts";
import { journalOf } from "./records.ts";
import { type EntryStep, keep, type ResolutionRow, type Tables, write } from "./tables.ts";

/** Claims the entry, settles it and writes the audit row, unless its owner is at work or something may still land. */
export function resolveStep(tables: Tables, id: Uint8Array, resolution: Resolution): EntryStep<Resolved> {
  return (row, now) => {
    if (row === null || isForgettable(row, now)) return keep({ kind: "absent" });
    if (row.state === "succeeded" || row.state === "failed") return keep({ kind: "finished", state: row.state });
    const claimableInMs = claimableAt(row) - now;
    if (row.state === "in_progress" && claimableInMs > 0) return keep({ kind: "running", claimableInMs });
    if (resolution.attempt !== null && resolution.attempt !== row.attempt) {
      return keep({ kind: "changed", attempt: row.attempt });
    }
    const openIntents = journalOf(row, now).intents.filter(({ state }) => state === "open");
    const settlesInMs = settlesIn(row.settlesAt === null ? null : row.settlesAt - now, openIntents);
    const isSettled = settlesInMs !== null && settlesInMs <= 0;
    if (!isSettled && !resolution.force) return keep({ kind: "unsettled", openIntents, settlesInMs });
    tables.resolutions.push(auditRow(id, row, resolution, { openIntents, forced: !isSettled, resolvedAt: now }));
    return write(resolvedRow(row, resolution, now), { kind: "resolved", from: row.state, openIntents });
  };
}

function resolvedRow(row: EntryRow, resolution: Resolution, now: number): EntryRow {
  const taken = takenOver(row, resolution.fence, 0, now);
  const completion = decidedCompletion(resolution);
  if (completion !== null) return completedRow(taken, completion, now);
  // Phases go on without their client, at once; a captured handler runs again only when its client asks.
  const sweepAt = row.runKind === "phases" ? now : null;
  // Who insisted proved nothing: what was on its way still is.
  return { ...taken, state: "released", leaseUntil: null, sweepAt, settlesAt: row.settlesAt };
}

function auditRow(
  entryId: Uint8Array,
  row: EntryRow,
  { verdict, completion, by, note }: Resolution,
  known: Pick<ResolutionRow, "openIntents" | "forced" | "resolvedAt">,
): ResolutionRow {
  const status = completion?.outcome.status ?? null;
  return { entryId, verdict, status, by, note, stateBefore: row.state, reasonBefore: row.reason, ...known };
}
