import type { ClientErrorCode } from "../../core/errors.ts";
import type { RefusalRow } from "../profile.ts";
import type { ProfileRequest } from "../profile-request.ts";
import { unavailable } from "./_unavailable.ts";

/** The errors that an AWS service tells apart; each of our codes is one of them. */
interface AwsErrors {
  /** No key where one is needed. */
  readonly missing: RefusalRow;
  /** A key that the service does not take. */
  readonly malformed: RefusalRow;
  /** A request that cannot be read or does not validate. */
  readonly invalid: RefusalRow;
  readonly tooLarge: RefusalRow;
  readonly unsupported: RefusalRow;
  readonly mismatch: RefusalRow;
  readonly forbidden: RefusalRow;
  readonly late: RefusalRow;
  /** The first request runs still: to be retried, by every generation of the SDKs. */
  readonly running: RefusalRow;
  /** Carried out, and the answer is gone: never to be retried. */
  readonly forgotten: RefusalRow;
  /** Ours to mend: to be retried. */
  readonly unavailable: RefusalRow;
}

/** A row for each code. What nobody knows yet is to be asked again, as what cannot be reached is. */
export function awsRefusals(errors: AwsErrors): Readonly<Record<ClientErrorCode, RefusalRow>> {
  return {
    idempotency_key_missing: errors.missing,
    idempotency_key_invalid: errors.malformed,
    idempotency_request_invalid: errors.invalid,
    idempotency_request_too_large: errors.tooLarge,
    idempotency_request_unsupported: errors.unsupported,
    idempotency_payload_mismatch: errors.mismatch,
    idempotency_forbidden: errors.forbidden,
    idempotency_retry_too_late: errors.late,
    idempotency_in_progress: errors.running,
    idempotency_outcome_unknown: errors.unavailable,
    idempotency_response_unavailable: errors.forgotten,
    ...unavailable(errors.unavailable),
  };
}

/** The header of every AWS answer that names the attempt; the SDKs show it as `$metadata.requestId`. */
export const REQUEST_ID = "x-amzn-requestid";

const CREDENTIAL = /^[^/]*\/\d{8}\/([a-z0-9-]+)\/[a-z0-9-]+\/aws4_request$/;
const HOST = /^[a-z0-9-]+\.([a-z]{2}(?:-[a-z]+)+-\d+)\.(?:amazonaws\.com|api\.aws)(?:\.cn)?(?::\d+)?$/i;

/**
 * The Region a request was signed for (Signature Version 4: the credential scope of the `Authorization` header, or of
 * `X-Amz-Credential` in a presigned request), or else the one that its host names; `null` where neither does.
 */
export function regionOf(request: ProfileRequest): string | null {
  const [authorization = ""] = request.headerLines("authorization");
  const signed = /^AWS4-HMAC-SHA256 .*\bCredential=([^,\s]+)/.exec(authorization)?.[1];
  const presigned = request.member("X-Amz-Credential");
  const credential = signed ?? (typeof presigned === "string" ? presigned : "");
  const [host = ""] = request.headerLines("host");
  return CREDENTIAL.exec(credential)?.[1] ?? HOST.exec(host)?.[1]?.toLowerCase() ?? null;
}

/** A partition of several parts, none of which can imitate two; `null` where the request names none of them. */
export function partitionOf(parts: readonly (string | null)[]): string | null {
  return parts.every((part) => part === null) ? null : JSON.stringify(parts);
}

/** A member as text, or `null`. */
export function textMember(request: ProfileRequest, name: string): string | null {
  const value = request.member(name);
  return typeof value === "string" && value !== "" ? value : null;
}
