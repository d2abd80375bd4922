import { sameDigest } from "../core/fingerprint.ts";
import type { OperationResponse, Rejection } from "../core/response.ts";
import { type Session, StoreFailure } from "../core/store.ts";
import { type Attempt, haltUnfit, step } from "./attempt.ts";
import type { Completed, PhaseStep } from "./definition.ts";
import { LeaseLost } from "./lease.ts";
import { inTransaction } from "./phase-transaction.ts";
import { completionOf, RollBackRejection, type SettledResponse, settleResponse } from "./settled-response.ts";
import { stepOf } from "./step.ts";
import { openOutcome } from "./stored-outcome.ts";

/** `op.complete`: the last transaction of an attempt, business rows and outcome together. */
export async function complete(
  attempt: Attempt,
  run: (step: PhaseStep<unknown>) => Promise<OperationResponse | Rejection>,
): Promise<Completed> {
  const settled = await step(
    attempt,
    "phase",
    "complete",
    (record) => haltUnfit(attempt, `phase_changed: recorded ${record.name} after the end`),
    () =>
      completeOnce(attempt, async (session) =>
        settleResponse(await run(stepOf(attempt.context, session, attempt.entry, "complete"))),
      ),
  );
  attempt.outcome = settled.outcome;
  return {} as Completed;
}

async function completeOnce(
  attempt: Attempt,
  run: (session: Session<unknown>) => Promise<SettledResponse>,
): Promise<SettledResponse> {
  const { lease, context, operation } = attempt;
  try {
    return await inTransaction(attempt, "complete", async (session) => {
      const settled = await run(session);
      if (settled.rollsBack) throw new RollBackRejection(settled);
      const completion = await completionOf(context, operation, lease.id, settled);
      lease.check();
      const kept = await session.complete(lease.id, lease.fence, completion);
      if (!kept) throw new LeaseLost("another attempt took over");
      return settled;
    });
  } catch (error) {
    // The fence keeps the entry ours between the two transactions.
    if (error instanceof RollBackRejection) {
      return completeOnce(attempt, async () => ({ ...error.settled, rollsBack: false }));
    }
    if (error instanceof StoreFailure && error.kind === "commit_unknown") return confirmedOutcome(attempt, error);
    throw error;
  }
}

/** COMMIT was sent and its answer lost: finished under our fence means that it arrived. */
async function confirmedOutcome({ context, lease }: Attempt, lost: StoreFailure): Promise<SettledResponse> {
  const entry = await context.store.read(lease.id).catch(() => null);
  const ours = entry !== null && sameDigest(entry.fence, lease.fence);
  if (!ours || entry.outcome === null || (entry.state !== "succeeded" && entry.state !== "failed")) throw lost;
  const outcome = await openOutcome(context, lease.id, entry.outcome).catch(() => null);
  if (outcome === null) throw lost;
  return { outcome, state: entry.state, rollsBack: false };
}
