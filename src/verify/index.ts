export type { HeaderLine } from "./answer.ts";
export { withKeyMember } from "./bodies.ts";
export type { Verdict } from "./case.ts";
export { type Dialect, dialects } from "./dialects.ts";
export { pathOfPointer } from "./json-text.ts";
export { junitXml } from "./junit.ts";
export {
  type CaseReport,
  caseIds,
  caseTexts,
  type Plan,
  planRun,
  type RunOptions,
  type RunReport,
  runCases,
} from "./run.ts";
export type { Address, Target } from "./target.ts";
