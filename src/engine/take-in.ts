import { pause } from "../core/clock.ts";
import { type Session, StoreFailure, TransactionAbandoned } from "../core/store.ts";
import type { Unsettled } from "./arrival.ts";
import { type EngineContext, jittered } from "./context.ts";
import { failureResult } from "./failures.ts";
import { uncontended } from "./uncontended.ts";

/**
 * What one try to take an arrival in gave: its result, or a reason for another try. `busy`: it is being taken in
 * elsewhere; `again`: somebody was faster, the next look tells.
 */
export type Tried<R> = { readonly kind: "settled"; readonly result: R } | { readonly kind: "busy" | "again" };

/** A try that ends it. */
export function settled<R>(result: R): Tried<R> {
  return { kind: "settled", result };
}

const SOON_MS = 1_000;

/** Nothing is known to be done. */
export function unsettled(why: Unsettled["why"]): Unsettled {
  return { kind: "unsettled", why, retryAfterMs: SOON_MS };
}

/** Tries in which somebody else was faster, before we call it contention: each has run the handler and rolled it back. */
const MOST_RACES = 20;

/**
 * Tries until there is a result, waiting at most `waitMs` for another consumer of the same arrival. Waiting holds no
 * connection, and a place among the waiters of this process.
 */
export async function untilSettled<R>(
  context: EngineContext,
  digest: Uint8Array,
  waitMs: number,
  attempt: () => Promise<Tried<R | Unsettled>>,
): Promise<R | Unsettled> {
  const { clock } = context.settings;
  const deadlineAtMs = clock.monotonicMs() + waitMs;
  let leave: (() => void) | null = null;
  let races = 0;
  try {
    for (let round = 0; ; round++) {
      const tried = await attempt().catch((error: unknown) => failedTry(error));
      if (tried.kind === "settled") return tried.result;
      if (tried.kind === "again") {
        if (++races >= MOST_RACES) return unsettled("contention");
        continue;
      }
      const leftMs = deadlineAtMs - clock.monotonicMs();
      leave ??= context.sharing.place(digest);
      if (leftMs <= 0 || leave === null) return unsettled("busy");
      await pause(clock, Math.min(jittered(context, 20, Math.min(round, 10), 500), leftMs));
    }
  } finally {
    leave?.();
  }
}

/** What a try's failure means; raises what is the handler's own. */
export function failedTry(error: unknown): Tried<Unsettled> {
  if (error instanceof TransactionAbandoned) return settled(unsettled("time_out"));
  // The index let somebody else finish first.
  if (error instanceof StoreFailure && error.kind === "conflict") return { kind: "again" };
  const result = failureResult(error);
  if (result === null) throw error;
  return settled(unsettled(WHY[result.kind] ?? "time_out"));
}

const WHY: Readonly<Record<string, Unsettled["why"]>> = {
  store_unavailable: "store_unavailable",
  contention: "contention",
  commit_unknown: "commit_unknown",
};

/** Leaves a transaction that must not go on, carrying what that means. Rolls back. */
class LeaveTransaction extends Error {
  readonly tried: Tried<unknown>;
  constructor(tried: Tried<unknown>) {
    super("transaction left");
    this.tried = tried;
  }
}

/** Rolls the transaction back, and makes that the result of the try. */
export function leave(tried: Tried<unknown>): never {
  throw new LeaveTransaction(tried);
}

/** One transaction that takes arrivals in; run again after serialisation failures. The body may {@link leave} it. */
export async function inArrivalTransaction<R>(
  context: EngineContext,
  body: (session: Session<unknown>) => Promise<R>,
): Promise<Tried<R>> {
  try {
    const result = await uncontended(context, () => context.store.transaction(body));
    await context.point("arrival:committed");
    return settled(result);
  } catch (error) {
    // What it carries was made by the same caller's body.
    if (error instanceof LeaveTransaction) return error.tried as Tried<R>;
    throw error;
  }
}

/**
 * What a look after a COMMIT whose answer was lost has proven. One that proves nothing, or fails, raises `lost`: the COMMIT
 * may still be on its way.
 */
export async function provenBy<R>(look: Promise<Tried<R>>, lost: StoreFailure): Promise<Tried<R>> {
  const seen = await look.catch((): Tried<R> => ({ kind: "busy" }));
  if (seen.kind !== "settled") throw lost;
  return seen;
}

/** Whether this process is taking the arrival in already: then the database need not be asked. */
export function runsHere({ sharing }: EngineContext, digest: Uint8Array): boolean {
  return sharing.owner(digest) !== undefined;
}

/** Runs a try as the only one of this process for these arrivals; none of them may run here already. */
export async function asOnlyOne<T>(
  { sharing }: EngineContext,
  digests: readonly Uint8Array[],
  run: () => Promise<T>,
): Promise<T> {
  const releases = digests.map((digest) => sharing.own(digest, digest));
  try {
    return await run();
  } finally {
    for (const release of releases) release();
  }
}
