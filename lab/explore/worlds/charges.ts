import { created, type Recover } from "oncekey";
import { EFFECTS } from "../invariants.ts";
import type { Provider, Receipt } from "../outside.ts";
import type { Deploy, Process } from "../world.ts";
import { type Ask, deskOf, direct, type InstanceTerms, instance, SHORT_RUN_MS, startRefused } from "./cast.ts";
import { sweepTasks } from "./sweeping.ts";

/** What a charge sends. */
export interface Charge {
  readonly identity: string;
  readonly payload: string;
}

/** The code of a `phases` operation with one outside call; a process deploys it. */
export interface ChargeCode {
  readonly recover: (desk: Provider, process: Process) => Recover<Charge, Receipt>;
  /** Books a row in a phase of its own before the call. Default: no. */
  readonly books?: boolean;
  readonly version?: number;
  readonly timeoutMs?: number;
  readonly maxDurationMs?: number;
  readonly maxAttempts?: number;
  readonly claimCommit?: "asynchronous";
  readonly dedupesForMs?: number;
  readonly once?: InstanceTerms;
}

/** Name of the operation, in every release of it. */
export const CHARGES = "charges.create";

/** Deploys charges. */
export function charges(code: ChargeCode): Deploy {
  return async (process, scene) => {
    const desk = deskOf(scene);
    const once = instance(process, code.once);
    let runs = 0;
    const operation = once.phases({
      name: CHARGES,
      version: code.version ?? 1,
      maxDurationMs: code.maxDurationMs ?? SHORT_RUN_MS,
      maxAttempts: code.maxAttempts ?? 6,
      ...(code.claimCommit === undefined ? {} : { claimCommit: code.claimCommit }),
      ...(code.dedupesForMs === undefined ? {} : { dedupesForMs: code.dedupesForMs }),
      async run(op) {
        const by = `${process.name}${++runs}`;
        const { payload } = op.input.body as Ask;
        const own: Charge = { identity: op.key, payload };
        if (code.books === true) {
          await op.phase("booked", ({ tx }) => tx.insert(EFFECTS, { ...own, phase: "booked" }));
        }
        const { receipt } = await op.call<Charge, Receipt>("pay", {
          timeoutMs: code.timeoutMs ?? 100,
          request: own,
          run: ({ key, request }) => desk.call(process, { ...request, call: "pay", key }),
          recover: code.recover(desk, process),
        });
        return op.complete(async ({ tx }) => {
          await tx.insert(EFFECTS, { ...own, phase: "settled" });
          return created("/charges/1", { receipt, by });
        });
      },
    });
    const refusal = await startRefused(once);
    if (refusal !== null) return { attempt: async () => refusal };
    return { ...direct(once, operation), tasks: sweepTasks(once) };
  };
}
