import { parseArgs } from "node:util";
import type { PspRecover } from "../../examples/payments/settings.ts";
import { UsageError, wholeNumber } from "../support/command.ts";

/** What the command line asks for. */
export interface CampaignOptions {
  /** How long faults happen. What comes before and after them is not counted. */
  readonly minutes: number;
  readonly seed: number;
  readonly recover: PspRecover;
  /** Whether the figures are to be stored for docs/proof.md. */
  readonly proof: boolean;
}

/** Times of the service under test, in milliseconds: short, so that leases lapse and outcomes are purged while it runs. */
export const TIMES = {
  leaseMs: 2_000,
  waitMs: 3_000,
  retentionMs: 40_000,
  /** For how long a client sends the same key again. With all delays on the way it must stay below the retention. */
  windowMs: 20_000,
  attemptMs: 8_000,
};

/** How many of each there are. */
export const CREW = { apis: 3, workers: 2, relays: 2 };

/** What only a request's body holds, and no log may. */
export const BODY_MARK = "labbody";

const RECOVER_FORMS: readonly PspRecover[] = ["dedupes", "find_cancel"];

/** Reads the command line. Raises what is wrong with it. */
export function readOptions(args: readonly string[]): CampaignOptions {
  const option = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...args],
    options: { minutes: option, seed: option, recover: option, proof: { type: "boolean" } },
  });
  const minutes = Number(values.minutes ?? "10");
  if (!(minutes > 0 && minutes <= 24 * 60)) throw new UsageError("--minutes is a number above 0");
  const seed = wholeNumber("--seed", values.seed ?? Math.floor(Math.random() * 1_000_000), 0);
  const recover = RECOVER_FORMS.find((one) => one === (values.recover ?? RECOVER_FORMS[seed % RECOVER_FORMS.length]));
  if (recover === undefined) throw new UsageError(`--recover is one of ${RECOVER_FORMS.join(", ")}`);
  return { minutes, seed, recover, proof: values.proof === true };
}
