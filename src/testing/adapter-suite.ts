import { accessCases } from "./adapter-access.ts";
import { bodyCases } from "./adapter-bodies.ts";
import { captureCases } from "./adapter-capture.ts";
import { hangUpCases } from "./adapter-hang-up.ts";
import type { AdapterHarness } from "./adapter-harness.ts";
import { keyCases } from "./adapter-keys.ts";
import { replayCases } from "./adapter-replay.ts";
import { defineSuite, type Suite } from "./suite.ts";

/**
 * What every HTTP adapter promises, shown on a real socket over the memory store: exact replay, the contract's refusals,
 * keys and bodies as hostile clients send them, authorisation on every attempt, capture of existing handlers.
 */
export const adapterSuite: Suite<AdapterHarness> = defineSuite("adapter", [
  ...replayCases,
  ...keyCases,
  ...bodyCases,
  ...accessCases,
  ...captureCases,
  ...hangUpCases,
]);

export {
  type AdapterBinding,
  type AdapterHarness,
  type AdapterRoute,
  bindingOptions,
  type ExistingHandler,
} from "./adapter-harness.ts";
