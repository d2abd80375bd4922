import type { ClientErrorCode } from "../../core/errors.ts";
import { stringifyJson } from "../../core/json/stringify.ts";
import type { HeaderLine } from "../../core/outcome.ts";
import type { Answered, Profile, RefusalRow } from "../profile.ts";
import type { Asked } from "../profile-request.ts";
import { unavailable } from "./_unavailable.ts";

// What both versions of Stripe's API share: the error object, the ids of requests, and the header that tells its SDKs
// whether to try again. Pages: "Errors", "Advanced error handling", "Idempotent requests", "Rate limits" (object locks).

const invalid = (status: number, error = "invalid_request_error"): RefusalRow => ({
  status,
  error,
  kind: "invalid_request_error",
});
/** Came, but not through our fault or the client's: the SDKs retry 5xx. */
const passing: RefusalRow = { status: 503, error: "api_error", kind: "api_error" };
const final = (error: string): RefusalRow => ({ status: 409, error, kind: "idempotency_error" });

/**
 * Documented: the type and status of a mismatch, the code and status of a request in progress, `lock_timeout`. Chosen by us,
 * where Stripe has no such case: what a client would take for "nothing happened, use a new key" (any other 4xx) is kept away
 * from the two answers after which that could do the work twice; they are 409, and not to be retried.
 */
const refusals: Readonly<Record<ClientErrorCode, RefusalRow>> = {
  idempotency_key_missing: invalid(400, "parameter_missing"),
  idempotency_key_invalid: invalid(400),
  idempotency_request_invalid: invalid(400),
  // Not 413 and 415: the SDKs raise their "something is wrong at Stripe" for every status that they do not know.
  idempotency_request_too_large: invalid(400),
  idempotency_request_unsupported: invalid(400),
  idempotency_payload_mismatch: {
    status: 400,
    error: "idempotency_error",
    kind: "idempotency_error",
    message: ({ key }) =>
      `The idempotency key${named(key)} was first used for another request: with other parameters, or for another endpoint. That request is untouched, and this one was not carried out. Use another key to make a different request.`,
  },
  idempotency_in_progress: {
    status: 409,
    error: "idempotency_key_in_use",
    kind: "idempotency_error",
    message: ({ key }) =>
      `A request with the idempotency key${named(key)} is still in progress. Nothing was repeated. Try again later with the same key.`,
  },
  idempotency_forbidden: invalid(403),
  idempotency_retry_too_late: final("idempotency_retry_too_late"),
  idempotency_response_unavailable: final("idempotency_response_unavailable"),
  // What a 500 means at Stripe: indeterminate, to be asked about with the same key.
  idempotency_outcome_unknown: { status: 500, error: "api_error", kind: "api_error" },
  ...unavailable(passing),
  idempotency_contention: invalid(429, "lock_timeout"),
};

function named(key: string | null): string {
  return key === null ? "" : ` '${key}'`;
}

/** `{"error":{"type","code","message"}}`; an error without a code of its own has none. */
function writeError({ kind, error, message }: RefusalRow, detail: string, asked: Asked): string {
  const text = message?.(asked) ?? detail;
  return stringifyJson({ error: { type: kind, ...(error !== kind && { code: error }), message: text } });
}

/** `Request-Id` on every answer, the key's echo, and `Stripe-Should-Retry` where the status alone would mislead. */
function headersOf(retry: string | null, { key, requestId }: Asked): HeaderLine[] {
  const lines: HeaderLine[] = [["request-id", `req_${requestId.replaceAll("-", "").slice(0, 14)}`]];
  if (key !== null) lines.push(["idempotency-key", key]);
  if (retry !== null) lines.push(["stripe-should-retry", retry]);
  return lines;
}

/** What a refusal says of trying again; the same request, the same key. `null`: the status says it. */
export function refusalRetry({
  status,
  code,
}: Extract<Answered, { readonly kind: "refused" }>): "true" | "false" | null {
  if (code === "idempotency_retry_too_late" || code === "idempotency_response_unavailable") return "false";
  return status === 409 || status === 429 || status >= 500 ? "true" : null;
}

/** What a version of the API has of its own. */
interface StripeVersion extends Pick<Profile, "name" | "key" | "provisional"> {
  readonly afterFailure: "replay" | "runAgain";
  readonly retentionMs: number;
  /** `Stripe-Should-Retry`, where the status alone would mislead. */
  retry(answered: Answered): string | null;
}

/**
 * A version of Stripe's dialect. Measured: stripe-node gives up on 409 after about a second, so a duplicate waits longer
 * than that.
 */
export function stripeProfile({ name, key, provisional, afterFailure, retentionMs, retry }: StripeVersion): Profile {
  return {
    name,
    key,
    defaults: { keySpace: "account", afterFailure, retentionMs, waitMs: 1_500, maxKeyLength: 255 },
    replayMarker: ["idempotent-replayed", "true"],
    provisional,
    mediaType: "application/json",
    refusals,
    write: (row, { detail }, asked) => writeError(row, detail, asked),
    headers: (answered, asked) => headersOf(retry(answered), asked),
  };
}
