import { stringifyJson } from "../../core/json/stringify.ts";
import type { Profile } from "../profile.ts";
import { awsRefusals, REQUEST_ID, regionOf } from "./_aws.ts";

/**
 * AWS services that speak JSON 1.0 or 1.1 (Smithy's pages on the two protocols). Their tokens differ in name, length and
 * life; where they do, this follows Amazon DynamoDB's `TransactWriteItems`, which documents most.
 *
 * - Documented: the members `ClientToken` (`clientToken`), `ClientRequestToken`, `IdempotencyToken`, optional, since the SDKs
 *   fill them in; `IdempotentParameterMismatchException` for another content and `TransactionInProgressException` while the
 *   first request runs (DynamoDB); `__type`, of which clients read what comes after `#`.
 * - Measured with `@aws-sdk/client-sqs`: both in-progress forms (400 and 503) are retried, 409 is not.
 * - Chosen: 64 characters (DynamoDB takes 36, most services 64), 24 hours (DynamoDB: 10 minutes), one Region, and what is not
 *   named above.
 */
export const awsJson: Profile = {
  name: "aws-json",
  key: {
    place: { in: "member", names: ["ClientToken", "clientToken", "ClientRequestToken", "IdempotencyToken"] },
    required: false,
  },
  defaults: { maxKeyLength: 64, afterFailure: "runAgain" },
  replayMarker: null,
  provisional: "refused",
  // SDKs read either version's errors by their content; a request in 1.0 may be answered so.
  mediaType: "application/x-amz-json-1.1",
  refusals: awsRefusals({
    missing: { status: 400, error: "ValidationException" },
    malformed: { status: 400, error: "ValidationException" },
    invalid: { status: 400, error: "ValidationException" },
    tooLarge: { status: 413, error: "RequestEntityTooLargeException" },
    unsupported: { status: 415, error: "UnsupportedMediaTypeException" },
    mismatch: { status: 400, error: "IdempotentParameterMismatchException" },
    forbidden: { status: 400, error: "AccessDeniedException" },
    // No name that the SDKs take for a wrong clock, which they correct before they send the request again.
    late: { status: 400, error: "IdempotentRequestTooLateException" },
    running: { status: 400, error: "TransactionInProgressException" },
    forgotten: { status: 400, error: "IdempotentResponseUnavailableException" },
    unavailable: { status: 503, error: "ServiceUnavailableException" },
  }),
  write: ({ error }, { detail }) => stringifyJson({ __type: error, message: detail }),
  headers(answered, { requestId }) {
    if (answered.kind !== "refused") return [[REQUEST_ID, requestId]];
    return [
      [REQUEST_ID, requestId],
      ["x-amzn-errortype", awsJson.refusals[answered.code].error],
    ];
  },
  partition: regionOf,
};
