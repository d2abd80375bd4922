import { describe, expect, it } from "vitest";
import { type ClientErrorCode, codes } from "../../src/core/errors.ts";
import { unasked } from "../../src/http/profile-request.ts";
import { awsEc2 } from "../../src/http/profiles/aws-ec2.ts";
import { awsJson } from "../../src/http/profiles/aws-json.ts";
import { sqsFifo } from "../../src/http/profiles/sqs-fifo.ts";

const clientCodes = Object.entries(codes).flatMap(([code, { audience }]) =>
  audience === "client" ? [code as ClientErrorCode] : [],
);

/** What the SDKs take for a clock that is wrong: they correct it and send the request again. */
const CLOCK_ERRORS =
  /^(?:AuthFailure|InvalidSignatureException|RequestExpired|RequestInTheFuture|RequestTimeTooSkewed|SignatureDoesNotMatch)$/;

/** What the SDKs retry at whatever status (their "throttling errors"), of the names used here. */
const THROTTLING_ERRORS = /^(?:PriorRequestNotComplete|TransactionInProgressException|RequestThrottled)$/;

/** Refusals that end by themselves: the same request may be sent again, and will be answered then. */
const passing = new Set<ClientErrorCode>([
  "idempotency_in_progress",
  "idempotency_outcome_unknown",
  ...clientCodes.filter((code) => codes[code].status === 503),
]);

describe.each([awsEc2, awsJson, sqsFifo])("the refusals of $name", (profile) => {
  it.each(clientCodes)("%s: the SDKs retry it exactly where it ends by itself", (code) => {
    const { status, error } = profile.refusals[code];
    expect(status >= 500 || THROTTLING_ERRORS.test(error)).toBe(passing.has(code));
    expect(error).not.toMatch(CLOCK_ERRORS);
    expect(status).not.toBe(409);
  });

  it.each(clientCodes)("%s is named in the body, and where clients look for it first", (code) => {
    const row = profile.refusals[code];
    const asked = { ...unasked, requestId: "00000000-0000-4000-8000-000000000000" };
    const problem = { code, detail: "What happened.", state: "none" } as const;
    const body = profile.write(row, problem, asked);
    expect(body).toContain(row.error);
    expect(body).toContain("What happened.");
    const lines = new Map(profile.headers?.({ kind: "refused", status: row.status, code }, asked));
    expect(lines.get("x-amzn-requestid")).toBe(asked.requestId);
    if (profile.mediaType.includes("json")) {
      expect([lines.get("x-amzn-errortype"), lines.get("x-amzn-query-error")?.split(";")[0]]).toContain(row.error);
    }
  });

  it("names the attempt in every other answer too, and nothing else", () => {
    const asked = { ...unasked, requestId: "attempt" };
    const lines = profile.headers?.({ kind: "replayed", status: 200 }, asked);
    expect(lines).toEqual([["x-amzn-requestid", "attempt"]]);
  });
});

describe("EC2's XML", () => {
  const written = (detail: string) =>
    awsEc2.write(
      awsEc2.refusals.idempotency_request_invalid,
      { code: "idempotency_request_invalid", detail, state: "none" },
      { ...unasked, requestId: "r" },
    );
  const message = (detail: string) => /<Message>(.*)<\/Message>/s.exec(written(detail))?.[1];

  it("holds any text: markup is escaped, what XML cannot hold is replaced", () => {
    expect(message(`<b a="1">R&D's</b>]]>`)).toBe("&lt;b a=&quot;1&quot;&gt;R&amp;D&apos;s&lt;/b&gt;]]&gt;");
    expect(message("\u0000a\u001bb\ufffec\ud800d")).toBe("\ufffda\ufffdb\ufffdc\ufffdd");
    expect(message("tab\tline\nГрюße 💶")).toBe("tab\tline\nГрюße 💶");
  });

  it("is the whole document", () => {
    expect(written("No.")).toBe(
      '<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error><Code>InvalidParameterValue</Code><Message>No.</Message></Error></Errors><RequestID>r</RequestID></Response>',
    );
  });
});
