import type { Outcome } from "oncekey";
import { parseExact } from "../exact-json.ts";
import type { Charge } from "../operations/charges.ts";

/** What became of a charge, whatever a vendor calls it. */
export interface ChargeOutcome {
  readonly kind: "succeeded" | "declined";
  readonly charge: Charge;
}

/** Reads what the charge operation stored. Raises for an answer that is none of its two. */
export function chargeOutcome({ status, body }: Outcome): ChargeOutcome {
  const value = parseExact(new TextDecoder().decode(body));
  // Its members were written by the operation itself; only the amount changes its type, with its size.
  const { charge = value } = value as { charge?: unknown };
  const read = charge as Charge;
  if (status !== 201 && status !== 402) throw new Error(`A charge does not answer ${status}.`);
  return {
    kind: status === 201 ? "succeeded" : "declined",
    charge: { ...read, amount_minor: BigInt(read.amount_minor) },
  };
}
