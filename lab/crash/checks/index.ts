import type { Check } from "../../support/check.ts";
import type { Evidence } from "../evidence.ts";
import { checkAnswers } from "./answers.ts";
import { checkEffects } from "./effects.ts";
import { checkEntries } from "./entries.ts";
import { checkFaults } from "./faults.ts";
import type { Invariant } from "./invariant.ts";
import { checkLogs } from "./logs.ts";
import { checkMessages } from "./messages.ts";
import { withinRetention } from "./within-retention.ts";

const GROUPS: readonly ((evidence: Evidence) => readonly Invariant[])[] = [
  checkEffects,
  checkAnswers,
  checkEntries,
  checkMessages,
  checkLogs,
  checkFaults,
];

/** All that must hold once everything has come to rest. */
export function invariantsOf(evidence: Evidence): Invariant[] {
  const judged = withinRetention(evidence);
  return GROUPS.flatMap((group) => group(judged));
}

/** As a check of the report, with its count. */
export function checkOf({ name, looked, wrong }: Invariant): Check {
  const first = wrong.length === 0 ? "" : `, the first: ${JSON.stringify(wrong[0])}`;
  return {
    name,
    passed: looked > 0 && wrong.length === 0,
    found: `${looked} looked at, ${wrong.length} wrong${first}`,
  };
}
