import { randomUUID } from "node:crypto";
import { type ExpectedRefusal, type ProfileHarness, profileSuite } from "oncekey/testing";
import { describe, expect, it } from "vitest";

/** A refusal whose body is JSON with at least these members. */
function json(status: number, members: object, headers: ExpectedRefusal["headers"] = {}): ExpectedRefusal {
  return { status, headers, body: (text) => expect(JSON.parse(text)).toMatchObject(members) };
}

/** A row of the table below: a profile and how its clients and its pages write. */
function profile(harness: Omit<ProfileHarness, "close">): void {
  profileSuite({ describe, it }, harness.profile, async () => ({ ...harness, close: async () => {} }));
}

const problem = (code: string, status: number, retry: string) =>
  json(status, { type: `/problems/${code}`, status, code, retry });

profile({
  profile: "ietf",
  request: (key, content) => ({
    headers: { "content-type": "application/json", ...(key !== null && { "idempotency-key": key }) },
    body: JSON.stringify({ content }),
  }),
  keys: () => `"${randomUUID()}"`,
  malformed: ["", '""', "two,keys", "no space", '"unfinished', "schlüssel"],
  refusals: {
    missing: problem("idempotency_key_missing", 400, "new_key"),
    malformed: problem("idempotency_key_invalid", 400, "new_key"),
    mismatch: problem("idempotency_payload_mismatch", 422, "new_key"),
    in_progress: problem("idempotency_in_progress", 409, "same_key"),
    unknown: problem("idempotency_outcome_unknown", 409, "same_key"),
    store_down: problem("idempotency_store_unavailable", 503, "same_key"),
    too_late: problem("idempotency_retry_too_late", 412, "never"),
  },
});

const paypalError = (status: number, name: string, issue: string, headers: ExpectedRefusal["headers"] = {}) =>
  json(
    status,
    { name, details: [{ issue, description: expect.any(String) }], links: [], debug_id: expect.any(String) },
    { "paypal-debug-id": /^[0-9a-f]{13}$/, ...headers },
  );
const soon = { "retry-after": /^[1-9]\d*$/ };

profile({
  profile: "paypal",
  request: (key, content) => ({
    target: "/v2/checkout/orders",
    headers: { "content-type": "application/json", ...(key !== null && { "paypal-request-id": key }) },
    body: JSON.stringify({ intent: "CAPTURE", purchase_units: [{ reference_id: content }] }),
  }),
  keys: () => randomUUID(),
  malformed: ["", "two,keys", "no space", "schlüssel"],
  refusals: {
    malformed: paypalError(400, "INVALID_REQUEST", "INVALID_PARAMETER_VALUE"),
    mismatch: paypalError(422, "UNPROCESSABLE_ENTITY", "DUPLICATE_REQUEST_ID"),
    in_progress: paypalError(409, "RESOURCE_CONFLICT", "PREVIOUS_REQUEST_IN_PROGRESS", soon),
    unknown: paypalError(409, "RESOURCE_CONFLICT", "PREVIOUS_REQUEST_IN_PROGRESS", soon),
    store_down: paypalError(503, "SERVICE_UNAVAILABLE", "SERVICE_UNAVAILABLE", soon),
    too_late: paypalError(422, "UNPROCESSABLE_ENTITY", "PAYPAL_REQUEST_ID_EXPIRED"),
  },
});

const squareError = (status: number, error: object, headers: ExpectedRefusal["headers"] = {}) =>
  json(status, { errors: [{ detail: expect.any(String), ...error }] }, headers);
const squareKeyError = (code: string) =>
  squareError(400, { category: "INVALID_REQUEST_ERROR", code, field: "idempotency_key" });

profile({
  profile: "square",
  request: (key, content) => ({
    target: "/v2/payments",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...(key !== null && { idempotency_key: key }), note: content }),
  }),
  keys: () => randomUUID(),
  malformed: ["", "  ", "schlüssel", "tab\t"],
  refusals: {
    missing: squareKeyError("MISSING_REQUIRED_PARAMETER"),
    malformed: squareKeyError("INVALID_VALUE"),
    mismatch: squareKeyError("IDEMPOTENCY_KEY_REUSED"),
    in_progress: squareError(503, { category: "API_ERROR", code: "TEMPORARY_ERROR" }, soon),
    unknown: squareError(503, { category: "API_ERROR", code: "TEMPORARY_ERROR" }, soon),
    store_down: squareError(503, { category: "API_ERROR", code: "SERVICE_UNAVAILABLE" }, soon),
    too_late: squareError(409, { category: "INVALID_REQUEST_ERROR", code: "CONFLICT" }),
  },
});

const googleError = (code: number, status: string, headers: ExpectedRefusal["headers"] = {}) =>
  json(code, { error: { code, status, message: expect.any(String), details: expect.any(Array) } }, headers);

profile({
  profile: "google",
  request: (key, content) => ({
    target: `/v1/things${key === null ? "" : `?requestId=${encodeURIComponent(key)}`}`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ content }),
  }),
  keys: () => randomUUID(),
  malformed: [
    "",
    "00000000-0000-0000-0000-000000000000",
    "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "6ba7b8109dad41d180b400c04fd430c8",
  ],
  refusals: {
    malformed: googleError(400, "INVALID_ARGUMENT"),
    mismatch: googleError(400, "INVALID_ARGUMENT"),
    in_progress: googleError(503, "UNAVAILABLE", soon),
    unknown: googleError(503, "UNAVAILABLE", soon),
    store_down: googleError(503, "UNAVAILABLE", soon),
    too_late: googleError(400, "FAILED_PRECONDITION"),
  },
});

const azureError = (status: number, code: string, headers: ExpectedRefusal["headers"]) =>
  json(
    status,
    { error: { code, message: expect.any(String) } },
    { "x-ms-error-code": new RegExp(`^${code}$`), ...headers },
  );
const rejected = { "repeatability-result": /^rejected$/ };
const accepted = { "repeatability-result": /^accepted$/ };

profile({
  profile: "azure",
  request: (key, content) => ({
    headers: {
      "content-type": "application/json",
      // When the clock of the suite begins.
      ...(key !== null && {
        "repeatability-request-id": key,
        "repeatability-first-sent": "Thu, 01 Jan 2026 00:00:00 GMT",
      }),
    },
    body: JSON.stringify({ content }),
  }),
  keys: () => randomUUID(),
  malformed: ["", "two,keys", "not-a-guid", "6ba7b8109dad41d180b400c04fd430c8"],
  elsewhere: (request) => ({ ...request, headers: { ...request.headers, "repeatability-client-id": "another" } }),
  refusals: {
    malformed: azureError(400, "InvalidHeaderValue", rejected),
    mismatch: azureError(400, "RepeatedRequestMismatch", rejected),
    in_progress: azureError(409, "RepeatedRequestInProgress", { ...accepted, ...soon }),
    unknown: azureError(409, "RepeatedRequestOutcomeUnknown", { ...accepted, ...soon }),
    store_down: azureError(503, "ServiceUnavailable", soon),
    too_late: azureError(412, "RepeatedRequestTooLate", rejected),
  },
});

/** Signed for a Region, as far as a profile looks at it. */
const signedFor = (region: string) => ({
  authorization: `AWS4-HMAC-SHA256 Credential=AKID/20261130/${region}/ec2/aws4_request, SignedHeaders=host, Signature=0`,
});

/** An error of EC2, whole: nothing else may stand in it. */
function ec2Error(status: number, code: string): ExpectedRefusal {
  const uuid = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
  const document = `<\\?xml version="1.0" encoding="UTF-8"\\?>\n<Response><Errors><Error><Code>${code}</Code><Message>[^<&]+</Message></Error></Errors><RequestID>${uuid}</RequestID></Response>`;
  const body = (text: string) => expect(text).toMatch(new RegExp(`^${document}$`));
  return { status, body, headers: { "x-amzn-requestid": new RegExp(`^${uuid}$`) } };
}

profile({
  profile: "aws-ec2",
  request: (key, content) => ({
    target: "/",
    headers: { "content-type": "application/x-www-form-urlencoded", ...signedFor("eu-central-1") },
    body: `Action=CreateVolume&Size=${content}${key === null ? "" : `&ClientToken=${encodeURIComponent(key)}`}`,
  }),
  keys: () => randomUUID(),
  malformed: ["", " ", "schlüssel", "new\nline"],
  elsewhere: (request) => ({ ...request, headers: { ...request.headers, ...signedFor("eu-west-1") } }),
  refusals: {
    malformed: ec2Error(400, "InvalidParameterValue"),
    mismatch: ec2Error(400, "IdempotentParameterMismatch"),
    in_progress: ec2Error(503, "PriorRequestNotComplete"),
    unknown: ec2Error(503, "ServiceUnavailable"),
    store_down: ec2Error(503, "ServiceUnavailable"),
    too_late: ec2Error(400, "IdempotentRequestTooLate"),
  },
});

/** An error of AWS's JSON protocols, named in the body and in a header. */
const awsError = (status: number, name: string) =>
  json(status, { __type: name, message: expect.any(String) }, { "x-amzn-errortype": new RegExp(`^${name}$`) });

profile({
  profile: "aws-json",
  request: (key, content) => ({
    target: "/",
    headers: { "content-type": "application/x-amz-json-1.1", ...signedFor("eu-central-1") },
    body: JSON.stringify({ content, ...(key !== null && { clientToken: key }) }),
  }),
  keys: () => randomUUID(),
  malformed: ["", " ", "schlüssel", "new\nline"],
  elsewhere: (request) => ({ ...request, headers: { ...request.headers, ...signedFor("eu-west-1") } }),
  refusals: {
    malformed: awsError(400, "ValidationException"),
    mismatch: awsError(400, "IdempotentParameterMismatchException"),
    in_progress: awsError(400, "TransactionInProgressException"),
    unknown: awsError(503, "ServiceUnavailableException"),
    store_down: awsError(503, "ServiceUnavailableException"),
    too_late: awsError(400, "IdempotentRequestTooLateException"),
  },
});

const sqsError = (status: number, code: string, fault: "Sender" | "Receiver") =>
  json(
    status,
    { __type: `com.amazonaws.sqs#${code}`, message: expect.any(String) },
    { "x-amzn-query-error": new RegExp(`^${code};${fault}$`) },
  );

profile({
  profile: "sqs-fifo",
  request: (key, content) => ({
    target: "/",
    headers: { "content-type": "application/x-amz-json-1.0" },
    body: JSON.stringify({
      QueueUrl: "http://127.0.0.1/1/things.fifo",
      MessageGroupId: "g",
      MessageBody: content,
      ...(key !== null && { MessageDeduplicationId: key }),
    }),
  }),
  keys: () => randomUUID(),
  malformed: ["", "no space", "schlüssel", "new\nline"],
  elsewhere: (request) => ({ ...request, body: request.body.replace("things.fifo", "others.fifo") }),
  refusals: {
    missing: sqsError(400, "InvalidParameterValue", "Sender"),
    malformed: sqsError(400, "InvalidParameterValue", "Sender"),
    in_progress: sqsError(503, "RequestThrottled", "Sender"),
    unknown: sqsError(503, "ServiceUnavailable", "Receiver"),
    store_down: sqsError(503, "ServiceUnavailable", "Receiver"),
    too_late: sqsError(400, "IdempotentRequestTooLate", "Sender"),
  },
});

const userError = (status: number, code: string, headers: ExpectedRefusal["headers"] = {}) =>
  json(status, { userErrors: [{ field: null, message: expect.any(String), code }] }, headers);
const requestError = (status: number, code: string, headers: ExpectedRefusal["headers"] = {}) =>
  json(status, { errors: [{ message: expect.any(String), extensions: { code } }] }, headers);

profile({
  profile: "shopify",
  request: (key, content) => ({
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...(key !== null && { idempotencyKey: key }), content }),
  }),
  keys: () => randomUUID(),
  malformed: ["", "  ", "schlüssel", "tab\t"],
  refusals: {
    missing: requestError(400, "BAD_REQUEST"),
    malformed: requestError(400, "BAD_REQUEST"),
    mismatch: userError(422, "IDEMPOTENCY_KEY_PARAMETER_MISMATCH"),
    in_progress: userError(409, "IDEMPOTENCY_CONCURRENT_REQUEST", soon),
    unknown: userError(409, "IDEMPOTENCY_CONCURRENT_REQUEST", soon),
    store_down: requestError(503, "INTERNAL_SERVER_ERROR", soon),
    too_late: requestError(412, "BAD_REQUEST"),
  },
});

const stripeError = (
  status: number,
  type: string,
  code: string | undefined,
  retry: "true" | "false" | null,
): ExpectedRefusal => ({
  status,
  headers: {
    "request-id": /^req_[0-9a-f]{14}$/,
    ...(retry !== null && { "stripe-should-retry": new RegExp(`^${retry}$`) }),
  },
  // Whole: Stripe's SDKs decide by this object, and show every member of it.
  body: (text) => expect(JSON.parse(text)).toEqual({ error: { type, code, message: expect.any(String) } }),
});
const naming = (refusal: ExpectedRefusal): ExpectedRefusal => ({
  ...refusal,
  body(text, key) {
    refusal.body(text, key);
    expect(JSON.parse(text).error.message).toContain(`'${key}'`);
  },
});

for (const version of ["stripe", "stripe-v2"] as const) {
  profile({
    profile: version,
    request: (key, content) =>
      version === "stripe"
        ? {
            target: "/v1/payment_intents",
            headers: {
              "content-type": "application/x-www-form-urlencoded",
              ...(key !== null && { "idempotency-key": key }),
            },
            body: `amount=1999&metadata[content]=${content}`,
          }
        : {
            target: "/v2/payments/off_session_payments",
            headers: { "content-type": "application/json", ...(key !== null && { "idempotency-key": key }) },
            body: JSON.stringify({ amount: { value: 1999 }, metadata: { content } }),
          },
    keys: () => `stripe-node-retry-${randomUUID()}`,
    malformed: ["", "two,keys", "no space", "schlüssel"],
    refusals: {
      malformed: stripeError(400, "invalid_request_error", undefined, null),
      mismatch: naming(stripeError(400, "idempotency_error", undefined, null)),
      in_progress: naming(stripeError(409, "idempotency_error", "idempotency_key_in_use", "true")),
      unknown: stripeError(500, "api_error", undefined, "true"),
      store_down: stripeError(503, "api_error", undefined, "true"),
      too_late: stripeError(409, "idempotency_error", "idempotency_retry_too_late", "false"),
    },
  });
}

const adyenError = (status: number, errorCode: string, errorType: string, transient: boolean): ExpectedRefusal => ({
  status,
  headers: { "transient-error": new RegExp(`^${transient}$`) },
  body(text) {
    const pspReference = expect.stringMatching(/^[0-9A-F]{16}$/);
    expect(JSON.parse(text)).toEqual({ status, errorCode, errorType, message: expect.any(String), pspReference });
  },
});

profile({
  profile: "adyen",
  request: (key, content) => ({
    target: "/v72/payments",
    headers: { "content-type": "application/json", ...(key !== null && { "idempotency-key": key }) },
    body: JSON.stringify({ reference: content }),
  }),
  keys: () => randomUUID(),
  malformed: ["", "two,keys", "no space", "schlüssel"],
  refusals: {
    malformed: adyenError(400, "702", "validation", false),
    mismatch: adyenError(422, "704", "validation", false),
    in_progress: adyenError(409, "704", "validation", true),
    unknown: adyenError(409, "704", "validation", true),
    store_down: adyenError(503, "703", "internal", true),
    too_late: adyenError(422, "704", "validation", false),
  },
});
