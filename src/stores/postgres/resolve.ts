import type { EntryState } from "../../core/entry.ts";
import type { Intent } from "../../core/intent.ts";
import { decidedCompletion, type Resolution, type Resolved, settlesIn } from "../../core/resolution.ts";
import { type SeenEntry, type Store, StoreFailure } from "../../core/store.ts";
import { LOCK_WAIT_MS, matched, type Run, untilSettled } from "./committing.ts";
import type { SqlRow } from "./driver-port.ts";
import { ownFailure, storeFailure } from "./errors.ts";
import { milliseconds } from "./limits.ts";
import { boolean, bytes, completionParameters, number, numberOrNull, storedJournal, text, textOrNull } from "./rows.ts";
import type { RunStatement } from "./statements.ts";

/** The decision's transaction holds the entry's row: a host that dies in it must not hold it for long. */
const IDLE_MS = 10_000;

/** Only for the time between two statements of one transaction. */
const LEASE_MS = 60_000;

/** What a decision is made of. */
export interface ResolveParts<Tx> {
  readonly run: RunStatement<Tx>;
  readonly transaction: Store<Tx>["transaction"];
}

/** Makes the store's `resolve`. */
export function resolver<Tx>({ run, transaction }: ResolveParts<Tx>): Store<Tx>["resolve"] {
  const isRace = (error: unknown) => error instanceof StoreFailure && error.kind === "contention";
  return (id, resolution) =>
    untilSettled(
      () =>
        transaction(({ tx }) => {
          const inside: Run = async (name, parameters) => {
            try {
              return await run(name, parameters, tx);
            } catch (error) {
              throw ownFailure(error);
            }
          };
          return resolveIn(inside, id, resolution);
        }),
      isRace,
    );
}

async function resolveIn(run: Run, id: Uint8Array, resolution: Resolution): Promise<Resolved> {
  const [row] = await run("resolve_lock", [id, milliseconds(LOCK_WAIT_MS), milliseconds(IDLE_MS)]);
  if (row === undefined) return finishedApart(run, id);
  if (boolean(row, "absent")) return { kind: "absent" };
  const state = text(row, "state") as EntryState;
  if (state === "succeeded" || state === "failed") return { kind: "finished", state };
  const claimableInMs = number(row, "claimable_in_ms");
  if (state === "in_progress" && claimableInMs > 0) return { kind: "running", claimableInMs };
  const attempt = number(row, "attempt");
  if (resolution.attempt !== null && resolution.attempt !== attempt) return { kind: "changed", attempt };
  const { intents } = storedJournal(await run("journal", [id]));
  const openIntents = intents.filter((intent) => intent.state === "open");
  const ownSettlesInMs = numberOrNull(row, "settles_in_ms");
  const settlesInMs = settlesIn(ownSettlesInMs, openIntents);
  const isSettled = settlesInMs !== null && settlesInMs <= 0;
  if (!isSettled && !resolution.force) return { kind: "unsettled", openIntents, settlesInMs };
  await settle(run, id, resolution, seenEntry(state, row), ownSettlesInMs);
  await audit(run, id, resolution, { row, forced: !isSettled, openIntents });
  return { kind: "resolved", from: state, openIntents };
}

/** What lies in a partition is finished, and nobody's to decide. */
async function finishedApart(run: Run, id: Uint8Array): Promise<Resolved> {
  const [row] = await run("read_apart", [id]);
  const state = row === undefined ? null : textOrNull(row, "state");
  return state === "succeeded" || state === "failed" ? { kind: "finished", state } : { kind: "absent" };
}

function seenEntry(state: SeenEntry["state"], row: SqlRow): SeenEntry {
  return { state, fence: bytes(row, "fence"), attempt: number(row, "attempt") };
}

async function settle(
  run: Run,
  id: Uint8Array,
  resolution: Resolution,
  seen: SeenEntry,
  ownSettlesInMs: number | null,
): Promise<void> {
  const { fence } = resolution;
  const completion = decidedCompletion(resolution);
  const lockTimeout = milliseconds(LOCK_WAIT_MS);
  const taken = await run("take_over", [id, seen.fence, seen.attempt, seen.state, fence, LEASE_MS, lockTimeout]);
  const done =
    completion === null
      ? await run("release_recorded", [id, fence, lockTimeout, true, ownSettlesInMs])
      : await run("complete", [id, fence, ...completionParameters(completion), null]);
  // The row is locked: only a lease that was renewed at the very end can be in the way, and that is a race to be run again.
  if (taken.length === 0 || !matched(done)) throw storeFailure("contention");
}

interface Known {
  readonly row: SqlRow;
  readonly forced: boolean;
  readonly openIntents: readonly Intent[];
}

async function audit(run: Run, id: Uint8Array, resolution: Resolution, known: Known): Promise<void> {
  const { verdict, completion, by, note } = resolution;
  const intents = known.openIntents.map(({ call, generation, state, form, ageMs }) => ({
    call,
    generation,
    state,
    form,
    ageMs: Math.round(ageMs),
  }));
  await run("resolve_audit", [
    id,
    verdict,
    completion?.outcome.status ?? null,
    known.forced,
    by,
    note,
    text(known.row, "state"),
    textOrNull(known.row, "reason"),
    JSON.stringify(intents),
  ]);
}
