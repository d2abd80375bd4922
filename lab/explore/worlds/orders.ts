import { AsyncLocalStorage } from "node:async_hooks";
import { created, type RunResult, reject } from "oncekey";
import { fromTransaction } from "oncekey/memory";
import { StoreFailure } from "../../../src/core/store.ts";
import type { Operation } from "../../../src/engine/operation.ts";
import { answerOf } from "../answers.ts";
import { EFFECTS, type EffectRow } from "../invariants.ts";
import type { Answer, AttemptAbout, Deploy, Process, Service, WorldTransaction } from "../world.ts";
import { type Ask, type InstanceTerms, instance, SCOPE, SHORT_RUN_MS, startRefused } from "./cast.ts";
import { sweepTasks } from "./sweeping.ts";

/** The code of a `transaction` operation; a process deploys it. */
export interface OrderCode {
  /** Refuses instead: the row is rolled back, the refusal stored. */
  readonly rejects?: boolean;
  /** Sends a message in the same transaction. */
  readonly sends?: boolean;
  /** Runs inside a transaction of the caller's own. */
  readonly isWithin?: boolean;
  /** Rows tell when they were written: for worlds in which outcomes are forgotten. */
  readonly isDated?: boolean;
  readonly maxDurationMs?: number;
  readonly lookUp?: "first" | "skip";
  readonly once?: InstanceTerms;
}

/** Name of the operation, in every release of it. */
export const ORDERS = "orders.create";

/** Which attempt runs: its rows say so. */
const running = new AsyncLocalStorage<AttemptAbout>();

/** The row of an attempt that runs now. */
function rowOf(key: string, { payload }: Ask, at: number | undefined): EffectRow {
  const { client, attempt } = running.getStore() as AttemptAbout;
  const row = { identity: key, payload, phase: "transaction", by: `${client}/${attempt}` };
  return at === undefined ? row : { ...row, at };
}

/** Deploys orders. Where its times are refused at start, it answers that, and runs nothing. */
export function orders(code: OrderCode = {}): Deploy {
  return async (process, scene) => {
    const once = instance(process, code.once);
    let runs = 0;
    const operation = once.transaction({
      name: ORDERS,
      version: 1,
      maxDurationMs: code.maxDurationMs ?? SHORT_RUN_MS,
      lookUp: code.lookUp ?? "first",
      async run({ tx, input, key, send }) {
        const by = `${process.name}${++runs}`;
        const row = rowOf(key, input.body as Ask, code.isDated === true ? scene.nowMs() : undefined);
        await tx.insert(EFFECTS, row);
        if (code.rejects === true) return reject(422, { by });
        if (code.sends === true) {
          await tx.insert(EFFECTS, { ...row, phase: "message" });
          await send("order.created", { by });
        }
        return created("/orders/1", { by });
      },
    });
    const refusal = await startRefused(once);
    if (refusal !== null) return { attempt: async () => refusal };
    return { ...attempts(process, once, operation, code.isWithin === true), tasks: sweepTasks(once) };
  };
}

function attempts(
  process: Process,
  once: ReturnType<typeof instance>,
  operation: Operation<"transaction">,
  isWithin: boolean,
): Pick<Service, "attempt"> {
  return {
    attempt: (request, about) =>
      running.run(about, () => {
        const { key, payload } = request as Ask;
        const asked = { scope: SCOPE, key, input: { body: { payload } } };
        if (!isWithin) return once.run(operation, asked).then(answerOf);
        return inside(process, (tx) => once.run(operation, { ...asked, transaction: fromTransaction(tx) }));
      }),
  };
}

/** A caller that opens the transaction, and answers only when it has committed. */
async function inside(process: Process, run: (tx: WorldTransaction) => Promise<RunResult>): Promise<Answer> {
  try {
    return answerOf(await process.store.transaction(({ tx }) => run(tx)));
  } catch (error) {
    if (error instanceof StoreFailure) return { kind: "later", text: error.kind };
    throw error;
  }
}
