/** The client: one key and one set of bytes for each action of the user, kept until its result is known. Re-exports only. */

export { type Client, createClient, type Submission } from "./client.ts";
export { SubmissionError } from "./error.ts";
export { memoryStorage } from "./memory.ts";
export type { ClientEvent, ClientOptions, PauseWhy, SendOptions } from "./options.ts";
export type { SubmissionStorage } from "./storage.ts";
export type {
  ClientResponse,
  HeaderPair,
  StoredSettlement,
  StoredSubmission,
  SubmissionRequest,
  SubmissionResult,
  UnknownWhy,
} from "./submission.ts";
