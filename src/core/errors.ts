/** What a client should do about a problem: repeat with the same key, start again with a new one, or give up. */
export type RetryAdvice = "same_key" | "new_key" | "never";

interface ClientCode {
  readonly audience: "client";
  readonly status: number;
  readonly retry: RetryAdvice;
  readonly title: string;
}

interface DeveloperCode {
  readonly audience: "developer";
  readonly title: string;
}

const client = (status: number, retry: RetryAdvice, title: string): ClientCode => ({
  audience: "client",
  status,
  retry,
  title,
});
const developer = (title: string): DeveloperCode => ({ audience: "developer", title });

/**
 * The one table of codes. `client` codes travel in problem bodies (status, retry advice and title are the default
 * profile's); `developer` codes are carried by {@link OncekeyError}s that never leave the process.
 * Frozen from the first release: a code may be added, never renamed.
 */
export const codes = {
  idempotency_key_missing: client(400, "new_key", "An idempotency key is required"),
  idempotency_key_invalid: client(400, "new_key", "The idempotency key is malformed"),
  idempotency_request_invalid: client(400, "same_key", "The request is not valid"),
  idempotency_request_too_large: client(413, "same_key", "The request body is too large"),
  idempotency_request_unsupported: client(
    415,
    "same_key",
    "The request's coding, charset or media type is not supported",
  ),
  idempotency_payload_mismatch: client(422, "new_key", "The idempotency key was used for another request"),
  idempotency_forbidden: client(403, "same_key", "The caller is not allowed to do this"),
  idempotency_retry_too_late: client(
    412,
    "never",
    "The request was first sent too long ago to be told from a repetition",
  ),
  idempotency_in_progress: client(409, "same_key", "The first request with this key is still running"),
  idempotency_outcome_unknown: client(409, "same_key", "It is not known yet what the first request did"),
  idempotency_response_unavailable: client(409, "never", "The request was carried out; its answer is no longer kept"),
  idempotency_store_unavailable: client(503, "same_key", "The idempotency store cannot be reached"),
  idempotency_lease_lost: client(503, "same_key", "The request lost its lease while it ran"),
  idempotency_commit_unknown: client(503, "same_key", "It is not known whether the transaction was committed"),
  idempotency_contention: client(503, "same_key", "Too many concurrent transactions touch the same rows"),
  idempotency_closing: client(503, "same_key", "This instance is shutting down"),
  idempotency_version_unknown: client(503, "same_key", "The key was last used by a newer version of the service"),

  oncekey_config_invalid: developer("The configuration would break a promise"),
  oncekey_not_started: developer("start() has not completed"),
  oncekey_closed: developer("The instance is closed"),
  oncekey_operation_duplicate: developer("Two operations share a name"),
  oncekey_operation_unknown: developer("The operation does not belong to this instance"),
  oncekey_profile_unknown: developer("The HTTP profile does not exist"),
  oncekey_scope_invalid: developer("The scope is missing or malformed"),
  oncekey_schema_missing: developer("The database has no Oncekey schema"),
  oncekey_schema_skew: developer("The database schema does not fit this version"),
  oncekey_body_consumed: developer("Another parser read the request body first"),
  oncekey_transaction_lost: developer("The handler ended the transaction it was given"),
  oncekey_transaction_unusable: developer("The transaction that was handed in cannot be used"),
  oncekey_transaction_aborted: developer("The handler swallowed an SQL error inside the transaction"),
  oncekey_reject_required: developer("A response of 400 or more was returned without reject()"),
  oncekey_response_invalid: developer("The handler returned something that is not a response"),
  oncekey_phase_nested: developer("A phase or call was started inside another one"),
  oncekey_phase_duplicate: developer("Two phases or calls share a name"),
  oncekey_complete_missing: developer("A phases operation ended without op.complete()"),
  oncekey_recover_missing: developer("An outside call has no way to be settled after a crash"),
  oncekey_value_unsupported: developer("A recorded value is outside what the codec keeps"),
  oncekey_input_unstable: developer("The input schema is not deterministic"),
  oncekey_stream_refused: developer("A streamed or upgraded answer cannot be replayed"),
  oncekey_topic_unknown: developer("The topic of a message is not declared"),
  oncekey_message_too_large: developer("The payload of a message is too large"),
  oncekey_message_undelivered: developer("A message was not delivered"),
  oncekey_delivery_invalid: developer("A delivery lacks what identifies it"),
  oncekey_submission_invalid: developer("The client cannot submit this"),
  oncekey_webhook_invalid: developer("The webhook endpoint is not configured soundly"),
  oncekey_driver_missing: developer("No database driver is installed"),
  oncekey_store_broken: developer("The store answered something impossible"),
} as const satisfies Record<string, ClientCode | DeveloperCode>;

/** Any code of the table. */
export type ErrorCode = keyof typeof codes;

/** The codes that may appear in an answer to a client. */
export type ClientErrorCode = {
  [C in ErrorCode]: (typeof codes)[C]["audience"] extends "client" ? C : never;
}[ErrorCode];

/**
 * Every error Oncekey raises on its own account. The message says what happened, what was kept and what to do next; it
 * never contains a key, a body, a token or a header value.
 */
export class OncekeyError extends Error {
  override readonly name = "OncekeyError";
  readonly code: ErrorCode;
  /** For client codes: how long to wait before the next attempt, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; retryAfterMs?: number } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** True for errors whose code may be shown to the client, as a problem body. */
export function isClientError(error: unknown): error is OncekeyError & { readonly code: ClientErrorCode } {
  return error instanceof OncekeyError && codes[error.code].audience === "client";
}
