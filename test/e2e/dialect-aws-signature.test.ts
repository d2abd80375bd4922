import type { Request } from "express";
import { beforeAll, describe, expect, it } from "vitest";
import { signedBy } from "../../examples/payments/dialects/_aws-auth.ts";
import { ec2 } from "../peers/vendor-sdks/sdks.ts";
import { awsConfig } from "./support/aws.ts";
import { send } from "./support/client.ts";
import { counted, errorOf, openSdkWorld, type SdkWorld } from "./support/sdk-cases.ts";
import type { SdkAttempt } from "./support/sdk-proxy.ts";

// AWS Signature Version 4, as @aws-sdk/client-ec2 makes it and the example verifies it: whoever can forge a request can use
// another tenant's tokens.

let world: SdkWorld;

beforeAll(async () => {
  world = await openSdkWorld("aws-ec2");
});

const create = (credentials: { readonly accessKeyId?: string; readonly secret?: string } = {}) =>
  new ec2.EC2Client(awsConfig(world, credentials)).send(
    new ec2.CreateVolumeCommand({ Size: 10, AvailabilityZone: "eu-central-1a" }),
  );

it.each([
  ["an unknown access key", { accessKeyId: "sk_test_nobody" }],
  ["another secret", { secret: "guessed" }],
])("is refused with %s, before any key is looked at", async (_what, credentials) => {
  const { given, executions } = await counted(world, () => errorOf(create(credentials)));
  expect(given).toBeInstanceOf(ec2.EC2ServiceException);
  expect(given).toMatchObject({ name: "AuthFailure", $metadata: { httpStatusCode: 401 } });
  expect(executions).toBe(0);
});

describe("a signature", () => {
  /** A request that the SDK signed, and has sent. */
  async function signed(): Promise<SdkAttempt> {
    const { attempts } = await counted(world, () => create());
    return attempts[0] as SdkAttempt;
  }

  const again = ({ headers, body }: Pick<SdkAttempt, "headers" | "body">, target = "/") =>
    send("POST", new URL(target, awsConfig(world).endpoint).href, { token: null, headers, body });

  it("is good for the very request again", async () => {
    const attempt = await signed();
    const answer = await again(attempt);
    expect([answer.status, answer.text]).toEqual([200, attempt.answer?.body]);
  });

  it.each<[string, (attempt: SdkAttempt) => Pick<SdkAttempt, "headers" | "body">]>([
    ["another body", ({ headers, body }) => ({ headers, body: body.replace("Size=10", "Size=11") })],
    ["another date", ({ headers, body }) => ({ headers: { ...headers, "x-amz-date": "20300101T000000Z" }, body })],
    [
      "another signed header",
      ({ headers, body }) => ({ headers: { ...headers, "amz-sdk-request": "attempt=2" }, body }),
    ],
    [
      "another Region",
      ({ headers, body }) => {
        const authorization = headers.authorization?.replace("eu-central-1", "eu-west-1") ?? "";
        return { headers: { ...headers, authorization }, body };
      },
    ],
  ])("is good for nothing with %s", async (_what, changed) => {
    const attempt = await signed();
    const { given, executions } = await counted(world, () => again(changed(attempt)));
    expect([given.status, executions]).toEqual([401, 0]);
    expect(given.text).toContain("<Code>AuthFailure</Code>");
  });

  it.each([
    ["parameters in the query", "/?ClientToken=another", {}],
    ["parameters behind a second question mark", "/??&ClientToken=another", {}],
    ["a header of AWS that it does not cover", "/", { "x-amz-target": "Payments.CreateInvoice" }],
  ])("is good for nothing with %s", async (_what, target, more) => {
    const { headers, body } = await signed();
    const { given, executions } = await counted(world, () => again({ headers: { ...headers, ...more }, body }, target));
    expect([given.status, executions]).toEqual([401, 0]);
  });

  it("is good for a quarter of an hour", async () => {
    const { method, target, headers, body } = await signed();
    const get = (name: string) => headers[name];
    const request = { method, originalUrl: target, rawBody: body, headers, get } as unknown as Request;
    const sentAtMs = Date.now();
    expect(signedBy(request, sentAtMs)).toBe("sk_test_acme");
    expect(signedBy(request, sentAtMs + 16 * 60_000)).toBeUndefined();
    expect(signedBy(request, sentAtMs - 16 * 60_000)).toBeUndefined();
  });
});
