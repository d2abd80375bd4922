import { assertOwned, created, happened, notDone, type Outcome, type Reconcile, unknown } from "oncekey";
import { directRequest } from "../../../src/engine/direct-request.ts";
import { answerOf } from "../answers.ts";
import { EFFECTS } from "../invariants.ts";
import type { Deploy, Process, Scene } from "../world.ts";
import { type Ask, deskOf, type InstanceTerms, instance, SCOPE, SHORT_RUN_MS, startRefused } from "./cast.ts";
import { sweepTasks } from "./sweeping.ts";

/** The code of a `capture` operation: a handler that does something outside, or in a transaction of its own. */
export interface RefundCode {
  /** What a run did is asked of the place where its effect is. */
  readonly reconciles?: boolean;
  readonly runsAgain?: boolean;
  /** Its effect is a row, written in a transaction of the handler's own, which asserts its ownership last. */
  readonly asserts?: boolean;
  /** What the handler makes of an error of its call: throw it (default), or answer 500. */
  readonly onError?: "throw" | 500;
  readonly claimCommit?: "asynchronous";
  readonly maxDurationMs?: number;
  readonly version?: number;
  readonly name?: string;
  /** Name of the outside call. Default `refund`. */
  readonly call?: string;
  readonly once?: InstanceTerms;
}

/** Name of the operation, in every release of it. */
export const REFUNDS = "refunds.create";

/** Deploys refunds. Where they are refused at start, it answers that, and runs nothing. */
export function refunds(code: RefundCode = {}): Deploy {
  return async (process, scene) => {
    const once = instance(process, code.once);
    const name = code.name ?? REFUNDS;
    const operation = once.capture({
      name,
      version: code.version ?? 1,
      maxDurationMs: code.maxDurationMs ?? SHORT_RUN_MS,
      ...(code.reconciles === true ? { reconcile: reconcileOf(process, scene, code) } : {}),
      ...(code.runsAgain === true ? { afterCrash: "runAgain" } : {}),
      ...(code.claimCommit === undefined ? {} : { claimCommit: code.claimCommit }),
    });
    const refusal = await startRefused(once);
    if (refusal !== null) return { attempt: async () => refusal };
    let runs = 0;
    const attempt = async (request: unknown) => {
      const asked = request as Ask;
      const handler = () => handle(process, scene, code, asked, () => `${process.name}${++runs}`);
      const input = { body: { payload: asked.payload } };
      // A binding hands the handler over with the request; there is no other way in.
      const captured = directRequest(once.internals.context, operation, { scope: SCOPE, key: asked.key, input });
      return answerOf(await operation.engine.execute(operation, { ...captured, handler }));
    };
    return { attempt, tasks: sweepTasks(once) };
  };
}

/** Does the work, and answers as an ordinary handler does. */
async function handle(
  process: Process,
  scene: Scene,
  code: RefundCode,
  { key, payload }: Ask,
  by: () => string,
): Promise<Outcome> {
  const own = { identity: key, payload };
  try {
    if (code.asserts === true) await inOwnTransaction(process, own);
    else await deskOf(scene).call(process, { ...own, call: code.call ?? "refund", key });
    return answer(201, { by: by() });
  } catch (error) {
    if (code.onError !== 500) throw error;
    return answer(500, { by: by() });
  }
}

async function inOwnTransaction(process: Process, own: { identity: string; payload: string }): Promise<void> {
  await process.store.transaction(async ({ tx }) => {
    await tx.insert(EFFECTS, { ...own, phase: "refund" });
    await assertOwned(tx);
  });
}

function answer(status: number, value: unknown): Outcome {
  return { status, headers: [], body: new TextEncoder().encode(JSON.stringify(value)) };
}

/** Asks the place where the effect is. */
function reconcileOf(process: Process, scene: Scene, { asserts }: RefundCode): Reconcile {
  const done = () => happened(created("/refunds/1", { by: "reconcile" }));
  return async ({ key }) => {
    if (asserts === true) {
      const rows = await process.store.transaction(({ tx }) => tx.rows(EFFECTS));
      return rows.some(({ identity }) => identity === key) ? done() : notDone();
    }
    const found = await deskOf(scene).find(process, key);
    if (found.kind === "none") return notDone();
    return found.kind === "found" ? done() : unknown("it cannot be told");
  };
}
