import { arrivals } from "./store-arrivals.ts";
import { bodies } from "./store-bodies.ts";
import { claiming } from "./store-claiming.ts";
import { completing } from "./store-completing.ts";
import { fencing } from "./store-fencing.ts";
import { givingBack } from "./store-giving-back.ts";
import type { StoreHarness } from "./store-harness.ts";
import { numberedArrivals } from "./store-numbered.ts";
import { outbox } from "./store-outbox.ts";
import { outboxOrder } from "./store-outbox-order.ts";
import { ownership } from "./store-ownership.ts";
import { recording } from "./store-recording.ts";
import { resolving } from "./store-resolving.ts";
import { sweeping } from "./store-sweeping.ts";
import { transactions } from "./store-transactions.ts";
import { within } from "./store-within.ts";
import { defineSuite } from "./suite.ts";

export type { ShownResolution, StoreHarness } from "./store-harness.ts";

/**
 * The contract of a `Store`: claims, leases, fences, outcomes and retention, records and intents, one-commit
 * transactions, what the sweeper takes up, decisions by hand, the outbox, arrivals and the list of bodies. Each case asks for an empty store; a store of one connection cannot pass the cases that look at an open
 * transaction from outside, and names them in its limits.
 */
export const storeSuite = defineSuite<StoreHarness>("store", [
  ...claiming,
  ...ownership,
  ...givingBack,
  ...completing,
  ...recording,
  ...transactions,
  ...within,
  ...fencing,
  ...sweeping,
  ...resolving,
  ...outbox,
  ...outboxOrder,
  ...arrivals,
  ...numberedArrivals,
  ...bodies,
]);
