import type { StoredSubmission } from "./submission.ts";

/**
 * Where submissions are kept. What `put` has resolved must survive the end of the process or page, whatever ends it. Errors
 * of the medium (full, blocked, cleared) are raised as they are; the client makes typed results of them.
 */
export interface SubmissionStorage {
  readonly name: string;
  /** The submission of that name, or `null`. One that cannot be read (another layout, damage) raises. */
  get(name: string): Promise<StoredSubmission | null>;
  /** Writes it whole, in place of an older one of its name: a reader sees the one or the other, never half. */
  put(submission: StoredSubmission): Promise<void>;
  /** All that can be read, in no particular order. */
  list(): Promise<readonly StoredSubmission[]>;
  /** Removes it; nothing happens where there is none. */
  remove(name: string): Promise<void>;
  /**
   * Runs `run` while no other tab or process that shares the storage runs one under that name; waits for its turn. A
   * holder that died does not block. The wait ends with the signal's reason when the signal aborts.
   */
  exclusively<T>(name: string, run: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}
