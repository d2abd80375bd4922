import type { ClientErrorCode } from "../../core/errors.ts";
import { stringifyJson } from "../../core/json/stringify.ts";
import type { Profile, RefusalRow } from "../profile.ts";
import type { Asked } from "../profile-request.ts";
import { unavailable } from "./_unavailable.ts";

const HOUR = 3_600_000;

/**
 * PayPal's REST APIs, with the times and lengths of Orders v2.
 *
 * Documented ("Idempotency" of the REST API guidelines; OpenAPI of Orders v2 and Payments v2): the header, its 108
 * characters, one key per kind of call, six hours, the shape of errors, `PAYPAL_REQUEST_ID_REQUIRED` with 400,
 * `PREVIOUS_REQUEST_IN_PROGRESS` with 409. Measured on its server SDK 2.5.0: a 409 is retried only with `Retry-After`, a
 * 413 always, `details` are parsed at 400, 401 and 422. PayPal is silent on a key with other content; chosen here is
 * `DUPLICATE_REQUEST_ID`, which older APIs of PayPal have, at 422. A replay gives the stored answer, where PayPal shows the
 * resource as it is by then.
 */
export const paypal: Profile = {
  name: "paypal",
  key: { place: { in: "header", name: "paypal-request-id" }, required: false },
  defaults: { retentionMs: 6 * HOUR, clientRetryWindowMs: 6 * HOUR, maxKeyLength: 108 },
  replayMarker: null,
  provisional: "refused",
  mediaType: "application/json",
  refusals: refusals(),
  write({ error, kind }, { detail }, asked) {
    return stringifyJson({
      name: kind,
      message: MESSAGES[kind as ErrorName],
      debug_id: debugId(asked),
      details: [{ issue: error, description: detail }],
      links: [],
    });
  },
  headers: (_answered, asked) => [["paypal-debug-id", debugId(asked)]],
};

/** What PayPal says of each class of errors, in our words. */
const MESSAGES = {
  INVALID_REQUEST: "The request cannot be read, or lacks something it needs.",
  NOT_AUTHORIZED: "The caller may not do this.",
  UNPROCESSABLE_ENTITY: "The request can be read but not carried out.",
  RESOURCE_CONFLICT: "The request is in the way of an earlier one.",
  UNSUPPORTED_MEDIA_TYPE: "The body's media type or coding is not supported.",
  SERVICE_UNAVAILABLE: "The service cannot answer now.",
} as const;

type ErrorName = keyof typeof MESSAGES;

function row(status: number, kind: ErrorName, error: string): RefusalRow {
  return { status, kind, error };
}

function refusals(): Readonly<Record<ClientErrorCode, RefusalRow>> {
  const inProgress = row(409, "RESOURCE_CONFLICT", "PREVIOUS_REQUEST_IN_PROGRESS");
  return {
    idempotency_key_missing: row(400, "INVALID_REQUEST", "PAYPAL_REQUEST_ID_REQUIRED"),
    idempotency_key_invalid: row(400, "INVALID_REQUEST", "INVALID_PARAMETER_VALUE"),
    idempotency_request_invalid: row(400, "INVALID_REQUEST", "INVALID_PARAMETER_SYNTAX"),
    // Not 413, which the SDK sends again.
    idempotency_request_too_large: row(400, "INVALID_REQUEST", "REQUEST_BODY_TOO_LARGE"),
    idempotency_request_unsupported: row(415, "UNSUPPORTED_MEDIA_TYPE", "UNSUPPORTED_MEDIA_TYPE"),
    idempotency_payload_mismatch: row(422, "UNPROCESSABLE_ENTITY", "DUPLICATE_REQUEST_ID"),
    idempotency_forbidden: row(403, "NOT_AUTHORIZED", "PERMISSION_DENIED"),
    idempotency_retry_too_late: row(422, "UNPROCESSABLE_ENTITY", "PAYPAL_REQUEST_ID_EXPIRED"),
    idempotency_in_progress: inProgress,
    idempotency_outcome_unknown: inProgress,
    // Without Retry-After, so that no SDK comes back for it.
    idempotency_response_unavailable: row(409, "RESOURCE_CONFLICT", "PREVIOUS_RESPONSE_NOT_AVAILABLE"),
    ...unavailable(row(503, "SERVICE_UNAVAILABLE", "SERVICE_UNAVAILABLE")),
  };
}

/** Thirteen hexadecimal digits, as PayPal's support asks for them. */
function debugId({ requestId }: Asked): string {
  return requestId.replaceAll("-", "").slice(0, 13);
}
