import type { InspectedEntry } from "../../stores/postgres/inspect.ts";
import type { WaitingMessage } from "../../stores/postgres/operator/messages.ts";
import { masked, maskedOrNull } from "../mask.ts";

/** An entry as lists show it: of its key only the ends. */
export function entryRow(entry: InspectedEntry) {
  const { id, tenant, client, operation, runKind, state, reason, attempt, status, createdAt, completedAt, expiresAt } =
    entry;
  return {
    id,
    tenant,
    client,
    operation,
    runKind,
    state,
    reason,
    attempt,
    status,
    key: masked(entry.key),
    createdAt,
    completedAt,
    expiresAt,
    sweepAt: entry.sweepAt,
  };
}

/** A message as lists show it: nothing of what it tells. */
export function messageRow(message: WaitingMessage) {
  return { ...message, orderBy: maskedOrNull(message.orderBy) };
}
