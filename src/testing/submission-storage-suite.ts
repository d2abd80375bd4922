import { abortingCases, holdingCases } from "./submission-storage-holding.ts";
import { keepingCases, missingCases } from "./submission-storage-keeping.ts";
import { defineSuite } from "./suite.ts";

export type { SubmissionStorageHarness } from "./submission-storage-harness.ts";

/**
 * The contract of a `SubmissionStorage`: what is put is there whole for everybody who shares the medium, what cannot be read
 * is told from what is missing, and under one name one runs at a time. Needs nothing but `node:assert/strict`, so that it
 * runs in a page as well, where a bundler puts something in that module's place.
 */
export const submissionStorageSuite = defineSuite("submission storage", [
  ...keepingCases,
  ...missingCases,
  ...holdingCases,
  ...abortingCases,
]);
