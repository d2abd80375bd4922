import type { Canary } from "../canary.ts";
import { CALLS } from "./calls.ts";
import { CLAIMS } from "./claims.ts";
import { CLIENT } from "./client.ts";
import { COMMITS } from "./commits.ts";
import { FENCES } from "./fences.ts";
import { GUARDS } from "./guards.ts";
import { MESSAGES } from "./messages.ts";
import { OUTCOMES } from "./outcomes.ts";
import { REQUESTS } from "./requests.ts";

/** Every break, in the order of the campaign. */
export const CANARIES: readonly Canary[] = [
  ...CLAIMS,
  ...FENCES,
  ...CALLS,
  ...OUTCOMES,
  ...COMMITS,
  ...REQUESTS,
  ...MESSAGES,
  ...CLIENT,
  ...GUARDS,
];
