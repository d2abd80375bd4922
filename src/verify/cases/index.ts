import type { Case } from "../case.ts";
import { callerCases } from "./callers.ts";
import { contentCases } from "./content.ts";
import { busyCases, duplicateCases } from "./duplicates.ts";
import { hangUpCases, lateCases, methodCases } from "./interrupted.ts";
import { keyCases } from "./keys.ts";
import { replayCases } from "./replays.ts";

/** Every case, in the order in which they run: what looks at all answers of the run comes last. */
export const cases: readonly Case[] = [
  ...replayCases,
  ...duplicateCases,
  ...contentCases,
  ...keyCases,
  ...callerCases,
  ...hangUpCases,
  ...methodCases,
  ...lateCases,
  ...busyCases,
];
