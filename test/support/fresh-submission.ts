import type { StoredSubmission } from "oncekey/client";

/** A submission as it is stored when it was made and never sent. */
export const freshSubmission = (name: string): StoredSubmission => ({
  form: 1,
  name,
  key: "k-1",
  request: { method: "POST", url: "https://api.example/", headers: [], bodyBase64: null, keyHeader: "Idempotency-Key" },
  createdAt: 1,
  firstSentAt: null,
  attempts: 0,
  spentMs: 0,
  spentAt: 1,
  retentionMs: null,
  settled: null,
});
