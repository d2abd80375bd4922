import type { ClientErrorCode } from "../../core/errors.ts";
import { stringifyJson } from "../../core/json/stringify.ts";
import type { Problem } from "../problem.ts";
import type { Profile, RefusalRow } from "../profile.ts";
import { unavailable } from "./_unavailable.ts";

const HOUR = 3_600_000;

/**
 * Google's API guidelines: AIP-155 (request identification), AIP-193 (errors), AIP-194 (automatic retry).
 *
 * Documented: the field `request_id` (`requestId` in JSON and in the query), a UUID of version 4, optional; a duplicate gets
 * the earlier *successful* answer, so that a failed request runs again; `google.rpc.Status` with `ErrorInfo`; only
 * UNAVAILABLE is retried by itself; Google Cloud keeps ids for at least 60 minutes. Not documented, and chosen here: a
 * duplicate of a running request is UNAVAILABLE (with ABORTED, clients would begin anew at a higher level), other content
 * is INVALID_ARGUMENT (ALREADY_EXISTS reads as "my earlier attempt succeeded").
 */
export const google: Profile = {
  name: "google",
  key: {
    place: { in: "member", names: ["request_id", "requestId"] },
    required: false,
    syntax: {
      // The zero UUID, which Google Cloud refuses, is of no version.
      pattern: /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i,
      says: "a UUID of version 4",
    },
    spelling: (id) => id.toLowerCase(),
  },
  defaults: { afterFailure: "runAgain", retentionMs: HOUR, clientRetryWindowMs: HOUR, maxKeyLength: 36 },
  replayMarker: null,
  provisional: "refused",
  mediaType: "application/json; charset=UTF-8",
  refusals: refusals(),
  write({ status, error }, problem) {
    const { detail } = problem;
    return stringifyJson({ error: { code: status, message: detail, status: error, details: detailsOf(problem) } });
  },
};

const RPC = "type.googleapis.com/google.rpc.";

const ABOUT_THE_KEY: ReadonlySet<ClientErrorCode> = new Set<ClientErrorCode>([
  "idempotency_key_missing",
  "idempotency_key_invalid",
  "idempotency_payload_mismatch",
]);

/** AIP-193: an ErrorInfo always; which field is wrong; when to come back. */
function detailsOf({ code, detail, retryAfterMs }: Problem): unknown[] {
  const details: unknown[] = [
    { "@type": `${RPC}ErrorInfo`, reason: code.toUpperCase(), domain: "oncekey", metadata: {} },
  ];
  if (ABOUT_THE_KEY.has(code)) {
    details.push({ "@type": `${RPC}BadRequest`, fieldViolations: [{ field: "request_id", description: detail }] });
  }
  if (retryAfterMs !== undefined) {
    details.push({ "@type": `${RPC}RetryInfo`, retryDelay: `${Math.max(1, Math.ceil(retryAfterMs / 1_000))}s` });
  }
  return details;
}

/** The HTTP statuses are those of google.rpc.Code. */
function refusals(): Readonly<Record<ClientErrorCode, RefusalRow>> {
  const invalidArgument: RefusalRow = { status: 400, error: "INVALID_ARGUMENT" };
  const failedPrecondition: RefusalRow = { status: 400, error: "FAILED_PRECONDITION" };
  const comeBack: RefusalRow = { status: 503, error: "UNAVAILABLE" };
  return {
    idempotency_key_missing: invalidArgument,
    idempotency_key_invalid: invalidArgument,
    idempotency_request_invalid: invalidArgument,
    idempotency_request_too_large: invalidArgument,
    idempotency_request_unsupported: invalidArgument,
    idempotency_payload_mismatch: invalidArgument,
    idempotency_forbidden: { status: 403, error: "PERMISSION_DENIED" },
    idempotency_retry_too_late: failedPrecondition,
    idempotency_in_progress: comeBack,
    idempotency_outcome_unknown: comeBack,
    idempotency_response_unavailable: failedPrecondition,
    ...unavailable(comeBack),
  };
}
