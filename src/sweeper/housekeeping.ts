import { tellMarked } from "../engine/observed-run.ts";
import { removeBody, TookTooLong } from "../engine/stored-body.ts";
import type { SweepAccess, SweepJob } from "../engine/sweeping.ts";

/** Notes which operations this process can take up, so that operators see what nobody can. */
export function announce({ context }: SweepAccess, jobs: readonly SweepJob[]): Promise<void> {
  return context.store.announce(jobs.flatMap(({ targets }) => targets));
}

/** What one pass marked: how many entries, and whether a target may have more of them. */
export interface Marked {
  readonly marked: number;
  readonly more: boolean;
}

/** Marks captured entries whose owner is gone, at most `batch` of each name. */
export async function markLapsed({ context }: SweepAccess, jobs: readonly SweepJob[], batch: number): Promise<Marked> {
  let marked = 0;
  let more = false;
  for (const { operation, targets, mark } of jobs) {
    if (mark === null) continue;
    for (const target of targets) {
      const count = await context.store.markLapsed(target, mark, batch);
      marked += count;
      tellMarked(context, operation, mark.reason, count);
      more ||= count >= batch;
    }
  }
  return { marked, more };
}

/** What one pass deleted, and whether there may be more. */
export interface Purged {
  readonly purged: number;
  readonly purgedDeliveries: number;
  readonly more: boolean;
}

/** Deletes at most `batch` outcomes and `batch` deliveries that are kept no longer. */
export async function purge({ context }: SweepAccess, batch: number): Promise<Purged> {
  const purged = await context.store.purge(batch);
  context.emit?.({ kind: "purged", what: "entries", count: purged });
  const purgedDeliveries = await context.store.purgeDeliveries(batch);
  context.emit?.({ kind: "purged", what: "deliveries", count: purgedDeliveries });
  return { purged, purgedDeliveries, more: purged >= batch || purgedDeliveries >= batch };
}

/** Looks after the store's own tables. Says whether there may be more. */
export async function maintain({ context }: SweepAccess, signal?: AbortSignal): Promise<{ readonly more: boolean }> {
  return { more: await context.store.maintain(signal) };
}

/** How many bodies one pass removed from the body store, and whether there may be more. */
export interface Removed {
  readonly removedBodies: number;
  readonly more: boolean;
}

/** When a body is looked at again that could not be removed, or whose sweeper died. */
const AGAIN_MS = 600_000;

/**
 * Removes at most `batch` bodies from the body store that no entry points at. One that fails is told of and stays noted;
 * so do those behind one that hangs, and those that are left when the signal aborts.
 */
export async function removeBodies({ context }: SweepAccess, batch: number, signal?: AbortSignal): Promise<Removed> {
  const { bodies } = context.store;
  const { bodyStore, onError } = context.settings;
  if (bodyStore === null) return { removedBodies: 0, more: false };
  const due = await bodies.due(batch, AGAIN_MS);
  const done = due.filter(({ inUse }) => inUse).map(({ pointer }) => pointer);
  let removedBodies = 0;
  for (const { pointer, inUse } of due) {
    if (inUse) continue;
    try {
      await removeBody(context, bodyStore, pointer, signal);
      done.push(pointer);
      removedBodies++;
    } catch (error) {
      if (signal?.aborted === true) break;
      onError(error, { operation: "sweeper", at: `remove from the body store (${bodyStore.name})` });
      if (error instanceof TookTooLong) break;
    }
  }
  if (done.length > 0) await bodies.strike(done);
  context.emit?.({ kind: "purged", what: "bodies", count: removedBodies });
  return { removedBodies, more: due.length >= batch && done.length > 0 };
}
