import type { World } from "../world.ts";
import { callWorlds } from "./calls.ts";
import { captureWorlds } from "./captures.ts";
import { deliveryWorlds } from "./deliveries.ts";
import { guardedWorlds } from "./guarded.ts";
import { operatorWorlds } from "./operators.ts";
import { phaseWorlds } from "./phases.ts";
import { retentionWorlds } from "./retention.ts";
import { lostClaimWorlds, rolloutWorlds } from "./rollouts.ts";
import { transactionWorlds } from "./transactions.ts";

/** All worlds, in the order of the campaign. */
export const worlds: readonly World[] = [
  ...guardedWorlds,
  ...transactionWorlds,
  ...phaseWorlds,
  ...callWorlds,
  ...captureWorlds,
  ...operatorWorlds,
  ...deliveryWorlds,
  ...retentionWorlds,
  ...rolloutWorlds,
  ...lostClaimWorlds,
];
