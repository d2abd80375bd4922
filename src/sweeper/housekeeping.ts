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
  for (const { targets, mark } of jobs) {
    if (mark === null) continue;
    for (const target of targets) {
      const count = await context.store.markLapsed(target, mark, batch);
      marked += count;
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
  const purgedDeliveries = await context.store.purgeDeliveries(batch);
  return { purged, purgedDeliveries, more: purged >= batch || purgedDeliveries >= batch };
}
