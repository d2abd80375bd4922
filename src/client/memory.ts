import type { SubmissionStorage } from "./storage.ts";
import type { StoredSubmission } from "./submission.ts";
import { inTime } from "./waiting.ts";

/** The longest that timers hold: 24 days. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * Keeps submissions for as long as the process or page lives: for tests, and where nothing else is there. Each call makes
 * another storage; clients that are to share one get the same object.
 */
export function memoryStorage(): SubmissionStorage {
  const kept = new Map<string, StoredSubmission>();
  const last = new Map<string, Promise<void>>();
  return {
    name: "memory",
    get: async (name) => structuredClone(kept.get(name) ?? null),
    async put(submission) {
      kept.set(submission.name, structuredClone(submission));
    },
    list: async () => structuredClone([...kept.values()]),
    async remove(name) {
      kept.delete(name);
    },
    exclusively(name, run, signal = new AbortController().signal) {
      const before = last.get(name) ?? Promise.resolve();
      const mine = inTime(before, LONGEST_MS, signal).then(() => {
        signal.throwIfAborted();
        return run();
      });
      // Who gives up its place still waits for those before it, so that nobody overtakes them.
      const queue = Promise.allSettled([before, mine]).then(() => {
        if (last.get(name) === queue) last.delete(name);
      });
      last.set(name, queue);
      return mine;
    },
  };
}
