/** A process that writes one submission again and again, and tells the number of each that was kept. */
import type { StoredSubmission } from "oncekey/client";
import { fileStorage } from "oncekey/client/file";

const { directory, submission } = JSON.parse(process.env.WRITER_SETTINGS ?? "{}") as {
  directory: string;
  submission: StoredSubmission;
};
const storage = fileStorage(directory);
for (let attempts = submission.attempts + 1; ; attempts++) {
  // Each as long as its number says, so that a mixture of two would be seen.
  const bodyBase64 = "QUJD".repeat(500_000 + (attempts % 7) * 1_000);
  await storage.put({ ...submission, attempts, request: { ...submission.request, bodyBase64 } });
  process.send?.(attempts);
}
