import type { ClientErrorCode } from "../../core/errors.ts";
import { stringifyJson } from "../../core/json/stringify.ts";
import type { Profile, RefusalRow } from "../profile.ts";
import { unavailable } from "./_unavailable.ts";

/**
 * Square's Connect v2 APIs, with the key length of CreatePayment.
 *
 * Documented ("Idempotency" of its guides, the CreatePayment reference, the enumerations of errors): the body member
 * and its 45 characters, that it is required, the shape of errors, `IDEMPOTENCY_KEY_REUSED`. Measured on its SDK 46.0.0:
 * 408, 429 and 5xx are retried after `Retry-After`, a 409 never, nor a lost connection. So what will be known later is
 * answered 503 with `TEMPORARY_ERROR`, the code that Square explains as safe to repeat with the same key. The status of a
 * reused key is 400 by common knowledge. How long keys are kept is not documented: 24 hours here.
 */
export const square: Profile = {
  name: "square",
  key: { place: { in: "member", names: ["idempotency_key"] }, required: true },
  defaults: { maxKeyLength: 45 },
  replayMarker: null,
  provisional: "refused",
  mediaType: "application/json",
  refusals: refusals(),
  write({ error, kind }, { code, detail }) {
    const field = ABOUT_THE_KEY.has(code) ? { field: "idempotency_key" } : {};
    return stringifyJson({ errors: [{ category: kind, code: error, detail, ...field }] });
  },
};

const ABOUT_THE_KEY: ReadonlySet<ClientErrorCode> = new Set<ClientErrorCode>([
  "idempotency_key_missing",
  "idempotency_key_invalid",
  "idempotency_payload_mismatch",
]);

function row(status: number, kind: string, error: string): RefusalRow {
  return { status, kind, error };
}

function refusals(): Readonly<Record<ClientErrorCode, RefusalRow>> {
  const invalid = (status: number, error: string) => row(status, "INVALID_REQUEST_ERROR", error);
  const comeBack = row(503, "API_ERROR", "TEMPORARY_ERROR");
  const down = row(503, "API_ERROR", "SERVICE_UNAVAILABLE");
  return {
    idempotency_key_missing: invalid(400, "MISSING_REQUIRED_PARAMETER"),
    idempotency_key_invalid: invalid(400, "INVALID_VALUE"),
    idempotency_request_invalid: invalid(400, "BAD_REQUEST"),
    idempotency_request_too_large: invalid(413, "REQUEST_ENTITY_TOO_LARGE"),
    idempotency_request_unsupported: invalid(415, "UNSUPPORTED_MEDIA_TYPE"),
    idempotency_payload_mismatch: invalid(400, "IDEMPOTENCY_KEY_REUSED"),
    idempotency_forbidden: row(403, "AUTHENTICATION_ERROR", "FORBIDDEN"),
    idempotency_retry_too_late: invalid(409, "CONFLICT"),
    idempotency_in_progress: comeBack,
    idempotency_outcome_unknown: comeBack,
    idempotency_response_unavailable: invalid(409, "CONFLICT"),
    ...unavailable(comeBack),
    idempotency_store_unavailable: down,
    idempotency_closing: down,
  };
}
