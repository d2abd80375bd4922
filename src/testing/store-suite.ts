import { claiming } from "./store-claiming.ts";
import { completing } from "./store-completing.ts";
import { fencing } from "./store-fencing.ts";
import { givingBack } from "./store-giving-back.ts";
import type { StoreHarness } from "./store-harness.ts";
import { ownership } from "./store-ownership.ts";
import { recording } from "./store-recording.ts";
import { transactions } from "./store-transactions.ts";
import { defineSuite } from "./suite.ts";

export type { StoreHarness } from "./store-harness.ts";

/**
 * The contract of a `Store`: claims, leases, fences, outcomes and retention, records and intents, one-commit
 * transactions. Each case asks for an empty store; a store of one connection cannot pass the cases that look at an open
 * transaction from outside, and names them in its limits.
 */
export const storeSuite = defineSuite<StoreHarness>("store", [
  ...claiming,
  ...ownership,
  ...givingBack,
  ...completing,
  ...recording,
  ...transactions,
  ...fencing,
]);
