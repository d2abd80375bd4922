import type { ClientErrorCode } from "../../core/errors.ts";
import { stringifyJson } from "../../core/json/stringify.ts";
import type { Profile, RefusalRow } from "../profile.ts";
import { unavailable } from "./_unavailable.ts";

/**
 * Shopify's Admin API, whose keys travel in GraphQL: the pages "Idempotent requests" and "Implementing idempotency" of its
 * API documentation, and its changelog of 12 December 2025.
 *
 * Documented: the directive `@idempotent(key:)` on a mutation's field, the argument `idempotencyKey` of older ones, the
 * member `unique_token` of the REST API; that listed mutations demand a key since 2026-04; 24 hours; that the same key with
 * other variables is an error, and one whose request still runs is sent again under the same key, both as `userErrors` of
 * the field's payload with HTTP 200. From the enumerations of its schema: the two codes. `IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED`
 * is in them as well, and clients answer it with a new key: it is not used here, since no refusal of ours proves that.
 * Not documented, and chosen here: everything that is no fault of the key's is an error of the request, with the codes
 * that Shopify gives there. On a route that is no GraphQL the status tells of the refusal: nobody reads a body of 200 for it.
 */
export const shopify: Profile = {
  name: "shopify",
  key: { place: { in: "member", names: ["idempotencyKey", "unique_token"] }, required: true },
  defaults: { retentionMs: 24 * 3_600_000 },
  replayMarker: null,
  provisional: "refused",
  payloadErrors: "userErrors",
  mediaType: "application/json; charset=utf-8",
  refusals: refusals(),
  write({ kind, error }, { detail }) {
    if (kind === "userErrors") return stringifyJson({ userErrors: [{ field: null, message: detail, code: error }] });
    return stringifyJson({ errors: [{ message: detail, extensions: { code: error } }] });
  },
};

function refusals(): Readonly<Record<ClientErrorCode, RefusalRow>> {
  const userError = (status: number, error: string): RefusalRow => ({ status, error, kind: "userErrors" });
  const badRequest: RefusalRow = { status: 400, error: "BAD_REQUEST" };
  const concurrent = userError(409, "IDEMPOTENCY_CONCURRENT_REQUEST");
  const broken: RefusalRow = { status: 503, error: "INTERNAL_SERVER_ERROR" };
  return {
    idempotency_key_missing: badRequest,
    idempotency_key_invalid: badRequest,
    idempotency_request_invalid: badRequest,
    idempotency_request_too_large: { ...badRequest, status: 413 },
    idempotency_request_unsupported: { ...badRequest, status: 415 },
    idempotency_payload_mismatch: userError(422, "IDEMPOTENCY_KEY_PARAMETER_MISMATCH"),
    idempotency_forbidden: { status: 403, error: "ACCESS_DENIED" },
    // A client that reads these as "use a new key" would do twice what was done.
    idempotency_retry_too_late: { ...badRequest, status: 412 },
    idempotency_response_unavailable: { ...badRequest, status: 409 },
    idempotency_in_progress: concurrent,
    idempotency_outcome_unknown: concurrent,
    ...unavailable(concurrent),
    idempotency_store_unavailable: broken,
    idempotency_closing: broken,
    idempotency_version_unknown: broken,
  };
}
