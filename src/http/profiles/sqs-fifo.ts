import { createHash } from "node:crypto";
import { stringifyJson } from "../../core/json/stringify.ts";
import type { Profile, RefusalRow } from "../profile.ts";
import type { ProfileRequest } from "../profile-request.ts";
import { awsRefusals, partitionOf, REQUEST_ID, regionOf, textMember } from "./_aws.ts";

/** For how long a queue of Amazon SQS drops what was sent before: 5 minutes. */
const WINDOW_MS = 300_000;

/**
 * `SendMessage` to a FIFO queue of Amazon SQS, as its API reference and "FIFO queue and message key terms" have it.
 *
 * - Documented: `MessageDeduplicationId`, 1 to 128 letters, digits and punctuation; dropped for 5 minutes after the message
 *   was sent; nothing is compared, so another body under the same id is dropped too; in a queue with content-based
 *   deduplication (a binding with `requireKey: false`) the id is the SHA-256 of the body, without attributes, and an id
 *   given explicitly may be equal to it; `RequestThrottled` among the errors of `SendMessage`.
 * - Measured with `@aws-sdk/client-sqs`: the error's name comes from `x-amzn-query-error`; `MD5OfMessageBody` must be the one
 *   of the body just sent (the route's answer, not the profile's); 503 and throttling errors are retried, 409 is not.
 * - Chosen: a duplicate waits for the first and is then asked to come back, where SQS knows no such thing; ids count within
 *   one queue, not within a message group (`DeduplicationScope`).
 */
export const sqsFifo: Profile = {
  name: "sqs-fifo",
  key: {
    place: { in: "member", names: ["MessageDeduplicationId"] },
    required: true,
    syntax: { pattern: /^[\x21-\x7e]+$/, says: "letters, digits and punctuation of ASCII" },
    otherwise: contentId,
  },
  defaults: {
    maxKeyLength: 128,
    compare: "none",
    afterFailure: "runAgain",
    retentionMs: WINDOW_MS,
    clientRetryWindowMs: WINDOW_MS,
  },
  replayMarker: null,
  provisional: "refused",
  mediaType: "application/x-amz-json-1.0",
  refusals: awsRefusals({
    missing: sender(400, "InvalidParameterValue"),
    malformed: sender(400, "InvalidParameterValue"),
    invalid: sender(400, "InvalidParameterValue"),
    tooLarge: sender(413, "RequestEntityTooLarge"),
    unsupported: sender(415, "UnsupportedMediaType"),
    // Never sent while nothing is compared; an operation of its own mind may.
    mismatch: sender(400, "IdempotentParameterMismatch"),
    forbidden: sender(403, "AccessDenied"),
    late: sender(400, "IdempotentRequestTooLate"),
    running: sender(503, "RequestThrottled"),
    forgotten: sender(400, "IdempotentResponseUnavailable"),
    unavailable: { status: 503, error: "ServiceUnavailable", kind: "Receiver" },
  }),
  write: ({ error }, { detail }) => stringifyJson({ __type: `com.amazonaws.sqs#${error}`, message: detail }),
  headers(answered, { requestId }) {
    if (answered.kind !== "refused") return [[REQUEST_ID, requestId]];
    const { error, kind } = sqsFifo.refusals[answered.code];
    return [
      [REQUEST_ID, requestId],
      ["x-amzn-query-error", `${error};${kind}`],
    ];
  },
  partition: (request) => partitionOf([regionOf(request), queueOf(request)]),
};

function sender(status: number, error: string): RefusalRow {
  return { status, error, kind: "Sender" };
}

/** SHA-256 in hexadecimal digits, as SQS shows it. */
function contentId(request: ProfileRequest): string | null {
  const body = request.member("MessageBody");
  return typeof body === "string" ? createHash("sha256").update(body).digest("hex") : null;
}

/** Account and name: one queue has several URLs, and clients behind other names for its host still mean the same. */
function queueOf(request: ProfileRequest): string | null {
  const url = textMember(request, "QueueUrl");
  return url === null || !URL.canParse(url) ? url : new URL(url).pathname;
}
