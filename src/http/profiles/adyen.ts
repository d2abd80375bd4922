import { stringifyJson } from "../../core/json/stringify.ts";
import type { HeaderLine } from "../../core/outcome.ts";
import type { Answered, Profile, RefusalRow } from "../profile.ts";
import type { Asked } from "../profile-request.ts";
import { unavailable } from "./_unavailable.ts";

const DAY_MS = 86_400_000;

const malformed = (status: number): RefusalRow => ({ status, error: "702", kind: "validation" });
/** Already processed, or in progress. */
const processed = (status: number): RefusalRow => ({ status, error: "704", kind: "validation" });
/** What idempotency stands on cannot be reached: nothing was carried out. */
const unreachable: RefusalRow = { status: 503, error: "703", kind: "internal" };

/**
 * Adyen's APIs ("API idempotency", "Response handling"; the error object of Checkout and the classic APIs). Documented:
 * `idempotency-key` of at most 64 characters, optional, POST only, keys of the company account, at least 7 days, the header's
 * echo on what was processed idempotently, 703 and 704, `transient-error`. Chosen, where Adyen is silent: content is compared,
 * and another one is 422 with 704 and not transient; a malformed key is 400 with 702, as a malformed body.
 */
export const adyen: Profile = {
  name: "adyen",
  key: {
    place: { in: "header", name: "idempotency-key" },
    required: false,
    ignoredOn: ["PUT", "PATCH", "DELETE"],
  },
  defaults: { keySpace: "account", afterFailure: "replay", retentionMs: 7 * DAY_MS, maxKeyLength: 64 },
  // The echo of the key, on first answers as on repeated ones, is all that there is.
  replayMarker: null,
  provisional: "refused",
  mediaType: "application/json",
  refusals: {
    idempotency_key_missing: malformed(400),
    idempotency_key_invalid: malformed(400),
    idempotency_request_invalid: malformed(400),
    idempotency_request_too_large: malformed(413),
    idempotency_request_unsupported: malformed(415),
    idempotency_payload_mismatch: processed(422),
    idempotency_in_progress: processed(409),
    idempotency_outcome_unknown: processed(409),
    idempotency_response_unavailable: processed(422),
    idempotency_retry_too_late: processed(422),
    idempotency_forbidden: { status: 403, error: "010", kind: "security" },
    ...unavailable(unreachable),
  },
  /** `status` is a number and the answer's own: Adyen's libraries believe it, not the status line. */
  write: ({ status, error, kind }, { detail }, { requestId }) =>
    stringifyJson({
      status,
      errorCode: error,
      message: detail,
      errorType: kind,
      pspReference: requestId.replaceAll("-", "").slice(0, 16).toUpperCase(),
    }),
  headers: (answered, asked) => (answered.kind === "refused" ? [transience(answered)] : echo(asked)),
};

/** Whether the same request with the same key is worth sending again, which the status alone does not say. */
function transience({ status }: Answered): HeaderLine {
  return ["transient-error", String(status === 409 || status === 503)];
}

function echo({ key }: Asked): HeaderLine[] {
  return key === null ? [] : [["idempotency-key", key]];
}
