import type { Profile } from "../profile.ts";
import type { ProfileRequest } from "../profile-request.ts";
import { awsRefusals, partitionOf, REQUEST_ID, regionOf, textMember } from "./_aws.ts";

/**
 * The Amazon EC2 Query API, as its pages "Ensuring idempotency in Amazon EC2 API requests" and "Error codes for the Amazon
 * EC2 API" have it.
 *
 * - Documented: the parameter `ClientToken`, up to 64 ASCII characters, optional; counted per action, account and Region, for
 *   zonal requests per Availability Zone; `IdempotentParameterMismatch`; only a request that succeeded uses its token up; the
 *   XML of errors; 5xx are retried, 4xx are not.
 * - Measured with `@aws-sdk/client-ec2`: what it retries (`PriorRequestNotComplete`, 503), that it never retries 409.
 * - Chosen, because the pages are silent: every other status and code, and what a duplicate of a running request gets.
 */
export const awsEc2: Profile = {
  name: "aws-ec2",
  key: { place: { in: "member", names: ["ClientToken"] }, required: false },
  // No retention is stated any more; an older page had "at least 24 hours", which is also our default.
  defaults: { maxKeyLength: 64, afterFailure: "runAgain" },
  replayMarker: null,
  provisional: "refused",
  mediaType: "text/xml;charset=UTF-8",
  refusals: awsRefusals({
    missing: { status: 400, error: "MissingParameter" },
    malformed: { status: 400, error: "InvalidParameterValue" },
    invalid: { status: 400, error: "InvalidParameterValue" },
    tooLarge: { status: 413, error: "RequestEntityTooLarge" },
    unsupported: { status: 415, error: "UnsupportedMediaType" },
    mismatch: { status: 400, error: "IdempotentParameterMismatch" },
    forbidden: { status: 403, error: "UnauthorizedOperation" },
    // Not RequestExpired: the SDKs take that one for a wrong clock, correct it and send the request again.
    late: { status: 400, error: "IdempotentRequestTooLate" },
    // The name of Route 53's error for this, which every SDK counts among the throttling errors; 503 for those that look at
    // the status alone.
    running: { status: 503, error: "PriorRequestNotComplete" },
    forgotten: { status: 400, error: "IdempotentResponseUnavailable" },
    unavailable: { status: 503, error: "ServiceUnavailable" },
  }),
  write: ({ error }, { detail }, { requestId }) => ec2Error(error, detail, requestId),
  headers: (_answered, { requestId }) => [[REQUEST_ID, requestId]],
  partition: (request) => partitionOf([textMember(request, "Action"), regionOf(request), zoneOf(request)]),
};

/** An error as EC2 writes it. */
function ec2Error(code: string, message: string, requestId: string): string {
  const error = `<Error><Code>${escapeXml(code)}</Code><Message>${escapeXml(message)}</Message></Error>`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors>${error}</Errors><RequestID>${escapeXml(requestId)}</RequestID></Response>`;
}

/** A zone that the request names. One that only its subnet implies is not known here: such a token counts in the Region. */
function zoneOf(request: ProfileRequest): string | null {
  return textMember(request, "Placement.AvailabilityZone") ?? textMember(request, "AvailabilityZone");
}

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
};

/** Text as XML content. Characters that XML 1.0 cannot hold at all (§2.2) become U+FFFD. */
function escapeXml(text: string): string {
  return text
    .toWellFormed()
    .replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd")
    .replace(/[&<>"']/g, (character) => ESCAPES[character] ?? character);
}
