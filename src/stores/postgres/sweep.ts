import type { StoredEntry } from "../../core/entry.ts";
import type { SeenEntry, TakenEntry } from "../../core/store.ts";
import type { Part, Run } from "./committing.ts";
import type { SqlRow } from "./driver-port.ts";
import { bytes, number, numberOrNull, storedEntry, text } from "./rows.ts";

/** What the sweeper asks a store for. */
export function sweepStatements(run: Run): Part<never, "takeDue" | "markLapsed" | "announce" | "purge"> {
  return {
    async takeDue({ operation, runKind, operationVersion }, limit, leaseMs) {
      const rows = await run("take_due", [operation, runKind, operationVersion, limit, leaseMs]);
      return [...rows].sort((a, b) => number(a, "due_at") - number(b, "due_at")).map(takenEntry);
    },
    async markLapsed({ operation, runKind, operationVersion }, { reason, sweepInMs, quietMs }, limit) {
      const parameters = [operation, runKind, operationVersion, limit, reason, sweepInMs, quietMs];
      const [row] = await run("mark_lapsed", parameters);
      return number(row ?? {}, "marked");
    },
    async announce(targets) {
      const rows = targets.map(({ operation, runKind, operationVersion }) => ({
        operation,
        run_kind: runKind,
        operation_version: operationVersion,
      }));
      await run("announce", [JSON.stringify(rows)]);
    },
    async purge(limit) {
      const [row] = await run("purge", [limit]);
      return number(row ?? {}, "purged");
    },
  };
}

function takenEntry(row: SqlRow): TakenEntry {
  return {
    entry: readable(row),
    id: bytes(row, "id"),
    fence: bytes(row, "fence"),
    operation: text(row, "operation"),
    from: text(row, "from_state") as SeenEntry["state"],
    idleMs: number(row, "idle_ms"),
    settlesInMs: numberOrNull(row, "settled_in_ms"),
  };
}

/** A row that cannot be decoded must not keep the others of its batch from being swept. */
function readable(row: SqlRow): StoredEntry | null {
  try {
    return storedEntry(row);
  } catch {
    return null;
  }
}
