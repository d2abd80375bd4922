import type { ClientErrorCode } from "../../core/errors.ts";
import { stringifyJson } from "../../core/json/stringify.ts";
import type { HeaderLine } from "../../core/outcome.ts";
import type { Answered, Profile, RefusalRow } from "../profile.ts";
import type { Asked, ProfileRequest } from "../profile-request.ts";
import { unavailable } from "./_unavailable.ts";

/**
 * Microsoft's Azure REST guidelines on OASIS "Repeatable Requests 1.0", with the answers of Azure Communication Services.
 *
 * Documented (Azure REST API guidelines, the OASIS specification, "Repeatable requests" of Communication Services): both
 * headers or none, GUID and IMF-fixdate; `Repeatability-Result`; malformed or other content 400 and rejected, first sent
 * before the tracked time 412 and rejected, still running 409 and accepted; 2xx and 4xx are replayed, after a 5xx the request
 * runs again; at least five minutes; the error object with `x-ms-error-code`. Chosen here: names of the error codes; 24 hours,
 * since a late retry is refused however short the time is; `Repeatability-Client-ID` narrows the key, as the specification
 * makes the pair unique. An endpoint that is not repeatable answers 501 to these headers: that is for routes without Oncekey.
 */
export const azure: Profile = {
  name: "azure",
  key: {
    place: { in: "header", name: "repeatability-request-id" },
    required: false,
    syntax: { pattern: /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, says: "a GUID" },
    spelling: (id) => id.toLowerCase(),
  },
  defaults: { refuseLateRetries: true, maxKeyLength: 36 },
  replayMarker: null,
  firstSent: { header: "repeatability-first-sent", required: true },
  provisional: "refused",
  mediaType: "application/json",
  refusals: refusals(),
  write({ error, kind }, { detail }) {
    return stringifyJson({ error: { code: error, message: detail, ...(kind !== undefined && { target: kind }) } });
  },
  headers(answered, asked) {
    return [["x-ms-request-id", asked.requestId], ...repeatability(answered, asked), ...errorCode(answered)];
  },
  partition,
};

/** Whether the request was taken as a repeatable one. Where that was never decided (no store, no time), nothing is said. */
function repeatability(answered: Answered, { key }: Asked): HeaderLine[] {
  if (answered.kind !== "refused") return key === null ? [] : [["repeatability-result", "accepted"]];
  const result = RESULTS[answered.code];
  return result === undefined ? [] : [["repeatability-result", result]];
}

const RESULTS: { readonly [C in ClientErrorCode]?: "accepted" | "rejected" } = {
  idempotency_key_missing: "rejected",
  idempotency_key_invalid: "rejected",
  idempotency_request_invalid: "rejected",
  idempotency_payload_mismatch: "rejected",
  idempotency_retry_too_late: "rejected",
  idempotency_in_progress: "accepted",
  idempotency_outcome_unknown: "accepted",
  idempotency_response_unavailable: "accepted",
  idempotency_lease_lost: "accepted",
  idempotency_commit_unknown: "accepted",
};

/** The guidelines want the code of the error object in a header too. */
function errorCode(answered: Answered): HeaderLine[] {
  return answered.kind === "refused" ? [["x-ms-error-code", azure.refusals[answered.code].error]] : [];
}

/** Request ids are unique for one client id; without one, for the caller. */
function partition(request: ProfileRequest): string | null {
  const lines = request.headerLines("repeatability-client-id");
  return lines.length === 0 ? null : lines.join("\n");
}

/** `kind` is the target of the error. */
function refusals(): Readonly<Record<ClientErrorCode, RefusalRow>> {
  const key = "Repeatability-Request-ID";
  return {
    idempotency_key_missing: { status: 400, error: "MissingRequiredHeader", kind: key },
    idempotency_key_invalid: { status: 400, error: "InvalidHeaderValue", kind: key },
    idempotency_request_invalid: { status: 400, error: "InvalidRequest" },
    idempotency_request_too_large: { status: 413, error: "RequestBodyTooLarge" },
    idempotency_request_unsupported: { status: 415, error: "UnsupportedMediaType" },
    idempotency_payload_mismatch: { status: 400, error: "RepeatedRequestMismatch", kind: key },
    idempotency_forbidden: { status: 403, error: "AuthorizationFailed" },
    idempotency_retry_too_late: { status: 412, error: "RepeatedRequestTooLate", kind: "Repeatability-First-Sent" },
    idempotency_in_progress: { status: 409, error: "RepeatedRequestInProgress" },
    idempotency_outcome_unknown: { status: 409, error: "RepeatedRequestOutcomeUnknown" },
    idempotency_response_unavailable: { status: 409, error: "RepeatedResponseUnavailable" },
    ...unavailable({ status: 503, error: "ServiceUnavailable" }),
  };
}
