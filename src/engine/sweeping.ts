import type { StoredEntry } from "../core/entry.ts";
import type { SweepTarget, UnknownMark } from "../core/store.ts";
import { type Owned, type Taken, takeDue } from "./claim.ts";
import { type EngineContext, growingPause, maxAttemptsOf, type Turn } from "./context.ts";
import type { CaptureDefinition, PhasesDefinition } from "./definition.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { observedSweep, tellResult } from "./observed-run.ts";
import type { Operation } from "./operation.ts";
import { resumeOwned } from "./phases.ts";
import { canReconcile, captureMark, reconcileOwned, untilSettled } from "./reconcile.ts";
import { namesOf, type Registry } from "./registry.ts";

/** What the sweeper needs of an instance. */
export interface SweepAccess {
  readonly context: EngineContext;
  readonly registry: Registry;
  readonly lifecycle: Lifecycle;
}

/** A started instance, whatever its transaction type: what sweepers and relays work for. */
export interface Instance {
  /** @internal */
  readonly internals: SweepAccess;
}

/** What the sweeper can do for one operation. */
export interface SweepJob {
  readonly operation: Operation;
  /** One for its name and each former one. */
  readonly targets: readonly SweepTarget[];
  /** Whether its entries can be taken up without a client: resumed, or reconciled. */
  readonly takes: boolean;
  /** How entries are marked whose owner is gone; `null`: they are resumed as they are. */
  readonly mark: Omit<UnknownMark, "provisional"> | null;
}

type AnyPhases = PhasesDefinition<unknown, Record<never, never>>;
type AnyCapture = CaptureDefinition<Record<never, never>>;

/** The jobs of this instance: one for each operation of which something can be done without a client. */
export function sweepJobs({ context, registry }: SweepAccess): SweepJob[] {
  return registry
    .all()
    .map((operation) => jobOf(context, operation))
    .filter((job) => job !== null);
}

function jobOf(context: EngineContext, operation: Operation): SweepJob | null {
  const { runKind, version, definition } = operation;
  const targets = namesOf(operation).map((name) => ({ operation: name, runKind, operationVersion: version }));
  switch (runKind) {
    case "transaction":
      return null;
    case "phases":
      return (definition as AnyPhases).storeInput === false ? null : { operation, targets, takes: true, mark: null };
    case "capture": {
      // It runs again with the next retry, which alone has a handler.
      if ((definition as AnyCapture).afterCrash === "runAgain") return null;
      const mark = captureMark(context, operation, "owner_lost");
      return { operation, targets, takes: canReconcile(operation), mark };
    }
  }
}

/** One entry that the sweeper holds. */
export interface Held extends Taken {
  readonly operation: Operation;
  /** It is to be given back as soon as its work can be stopped. */
  stopping: boolean;
}

/** What came of an entry that was taken up. `left`: given back as it was. */
export type Swept = "resumed" | "reconciled" | "gaveUp" | "failed" | "left";

/** Takes over at most `limit` due entries of a target. Each must go to {@link sweep}. */
export async function holdDue(
  { context }: SweepAccess,
  operation: Operation,
  target: SweepTarget,
  limit: number,
): Promise<Held[]> {
  const taken = await takeDue(context, operation, target, limit);
  return taken.map((one) => ({ ...one, operation, stopping: false }));
}

/** Ends the work on a held entry now; {@link sweep} then gives it back. */
export function stopHeld(held: Held): void {
  held.stopping = true;
  held.lease.lose("the sweeper stops");
}

/** Resumes or reconciles one held entry. Never raises: what it meets goes to `onError`. */
export function sweep({ context, lifecycle }: SweepAccess, held: Held): Promise<Swept> {
  const { entry, id } = held.taken;
  const whose = { id, tenant: entry?.tenant ?? null, correlation: entry?.correlation ?? null };
  return observedSweep(context, held.operation, whose, (observed) => workOn(observed, lifecycle, held));
}

async function workOn(context: EngineContext, lifecycle: Lifecycle, held: Held): Promise<Swept> {
  try {
    if (held.stopping || lifecycle.phase !== "started") return await giveBack(context, held);
    return await lifecycle.tracked(() => sweepHeld(context, held));
  } catch (error) {
    if (held.stopping) return "left";
    context.settings.onError(error, { operation: held.operation.name, at: "work of the sweeper" });
    return "failed";
  } finally {
    held.lease.stop();
  }
}

async function sweepHeld(context: EngineContext, held: Held): Promise<Swept> {
  const { taken, operation } = held;
  if (taken.entry === null) {
    await context.store.markUnknown(taken.id, taken.fence, { ...UNREADABLE, provisional: null });
    return "gaveUp";
  }
  const owned: Owned = { ...held, entry: taken.entry };
  if (operation.runKind === "capture") return sweepCaptured(context, held, owned);
  const startedAtMs = context.settings.clock.monotonicMs();
  const turn = await resumeOwned(context, operation, owned, taken.from);
  if (turn.kind === "done") tellResult(context, turn.result, startedAtMs);
  if (held.stopping && isLost(turn)) return giveBack(context, held);
  return isGivenUp(turn) ? "gaveUp" : "resumed";
}

/**
 * In a rollout the row may be one that a newer release wrote, and whoever can read it must get it: an old sweeper must not
 * park it for a person. So sweepers look again; to this one that costs a look a minute.
 */
const UNREADABLE = {
  reason: "unreadable: written in an encoding that this release does not know, or damaged",
  sweepInMs: 60_000,
  quietMs: null,
};

function isLost(turn: Turn): boolean {
  return turn.kind === "done" && turn.result.kind === "lease_lost";
}

function isGivenUp(turn: Turn): boolean {
  return turn.kind === "done" && turn.result.kind === "unknown" && turn.result.state === "needs_recovery";
}

async function sweepCaptured(context: EngineContext, held: Held, owned: Owned): Promise<Swept> {
  const { taken, operation } = held;
  // Only a retry has the handler that could run it.
  if (taken.from === "released") return giveBack(context, held);
  try {
    await reconcileOwned(context, operation, owned, unsettledMs(context, held));
    return "reconciled";
  } catch (error) {
    if (held.stopping) return giveBack(context, held);
    throw error;
  }
}

function unsettledMs(context: EngineContext, { operation, taken }: Held): number {
  return untilSettled(context, operation, taken.settlesInMs, taken.idleMs);
}

/** Puts a held entry back as it was, for whoever comes next; its attempt counts all the same. */
async function giveBack(context: EngineContext, held: Held): Promise<"left"> {
  const { operation, taken } = held;
  const { id, fence, entry, from } = taken;
  const { store } = context;
  if (operation.runKind === "capture" && from === "released") await store.release(id, fence, true);
  else if (from === "in_progress" && (entry?.attempt ?? 0) <= maxAttemptsOf(operation))
    await store.suspend(id, fence, 0);
  else await store.markUnknown(id, fence, heldMark(context, held, entry));
  return "left";
}

function heldMark(context: EngineContext, held: Held, entry: StoredEntry | null): UnknownMark {
  const reason = entry?.reason ?? "given back by a sweeper that stopped";
  const quietMs = held.operation.runKind === "capture" ? Math.max(0, unsettledMs(context, held)) : null;
  return { reason, provisional: null, sweepInMs: growingPause(1), quietMs };
}
