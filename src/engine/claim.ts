import { pause } from "../core/clock.ts";
import type { NewEntry, StoredEntry } from "../core/entry.ts";
import { type SeenEntry, StoreFailure, type SweepTarget, type TakenEntry } from "../core/store.ts";
import { claimCommitOf, type EngineContext, jittered, maxDurationOf, newFence, runTimeOf } from "./context.ts";
import { keepLease, type Lease, leaseFor, leaseLength } from "./lease.ts";
import type { Operation } from "./operation.ts";
import type { OperationRequest } from "./request.ts";

/** An entry that this attempt owns, and the lease that says so. */
export interface Owned {
  readonly entry: StoredEntry;
  readonly lease: Lease;
  /** Monotonic time directly before the claim was sent and directly after its answer: the entry's clock was read in between. */
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
}

const RESENDS = 3;

/**
 * Claims a new entry in a commit of its own; `null` when the identity has one. A claim whose answer was lost is sent
 * again with the same fence until it is known: a row with our fence is ours.
 */
export function claimNew(
  context: EngineContext,
  operation: Operation,
  draft: NewEntry,
  host: HostTime,
): Promise<Owned | null> {
  return owned(context, operation, draft.fence, host, (leaseMs) =>
    context.store.claim(draft, leaseMs, claimCommitOf(operation)),
  );
}

/** What a claim asks of its request: when the host ends it. */
type HostTime = Pick<OperationRequest, "remainingMs">;

/** Takes over an entry that its owner left; `null` when somebody was faster. */
export function claimAbandoned(
  context: EngineContext,
  operation: Operation,
  entry: StoredEntry,
  host: HostTime = {},
): Promise<Owned | null> {
  const fence = newFence(context);
  const seen: SeenEntry = { fence: entry.fence, attempt: entry.attempt, state: entry.state as SeenEntry["state"] };
  return owned(context, operation, fence, host, (leaseMs) => context.store.takeOver(entry.id, seen, fence, leaseMs));
}

/** An entry that the sweeper took over and may not be able to read, with the lease that says so. */
export interface Taken extends Omit<Owned, "entry"> {
  readonly taken: TakenEntry;
}

/** Takes over at most `limit` entries that are due. One whose answer is lost lapses like that of a process that died. */
export async function takeDue(
  context: EngineContext,
  operation: Operation,
  target: SweepTarget,
  limit: number,
): Promise<Taken[]> {
  const { store, settings } = context;
  const { clock, leaseMs } = settings;
  const maxDurationMs = maxDurationOf(operation);
  const sentAtMs = clock.monotonicMs();
  const entries = await store.takeDue(target, limit, leaseLength(store, leaseMs, maxDurationMs));
  const receivedAtMs = clock.monotonicMs();
  return entries.map((taken) => {
    const { id, fence } = taken;
    const lease = keepLease({ store, clock, id, fence, leaseMs, maxDurationMs, claimSentAtMs: sentAtMs });
    return { taken, lease, sentAtMs, receivedAtMs };
  });
}

async function owned(
  context: EngineContext,
  operation: Operation,
  fence: Uint8Array,
  host: HostTime,
  claim: (leaseMs: number) => Promise<StoredEntry | null>,
): Promise<Owned | null> {
  const { store, settings } = context;
  const { clock } = settings;
  const maxDurationMs = runTimeOf(operation, host);
  const leaseMs =
    host.remainingMs === undefined ? settings.leaseMs : Math.min(settings.leaseMs, leaseFor(maxDurationMs));
  const claimSentAtMs = clock.monotonicMs();
  const entry = await resent(context, () => claim(leaseLength(store, leaseMs, maxDurationMs)));
  if (entry === null) return null;
  const lease = keepLease({ store, clock, id: entry.id, fence, leaseMs, maxDurationMs, claimSentAtMs });
  return { entry, lease, sentAtMs: claimSentAtMs, receivedAtMs: clock.monotonicMs() };
}

async function resent<T>(context: EngineContext, claim: () => Promise<T>): Promise<T> {
  for (let sent = 1; ; sent++) {
    try {
      return await claim();
    } catch (error) {
      const mayHaveArrived = error instanceof StoreFailure && ["unavailable", "commit_unknown"].includes(error.kind);
      if (!mayHaveArrived || sent >= RESENDS) throw error;
      await pause(context.settings.clock, jittered(context, 20, sent, 200));
    }
  }
}
