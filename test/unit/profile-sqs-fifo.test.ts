import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { ProfileRequest } from "../../src/http/profile-request.ts";
import { sqsFifo } from "../../src/http/profiles/sqs-fifo.ts";

function request(members: Readonly<Record<string, unknown>>, region?: string): ProfileRequest {
  const authorization = `AWS4-HMAC-SHA256 Credential=AKID/20261130/${region}/sqs/aws4_request, SignedHeaders=host, Signature=00`;
  return {
    method: "POST",
    target: "/",
    bytes: null,
    headerLines: (name) => (name === "authorization" && region !== undefined ? [authorization] : []),
    member: (name) => members[name],
  };
}

describe("the id of a message that brings none", () => {
  const idOf = (members: Readonly<Record<string, unknown>>) => sqsFifo.key.otherwise?.(request(members));

  it("is the SHA-256 of its body's UTF-8, without attributes", () => {
    const body = '{"price":"5 €"}';
    const digest = createHash("sha256").update(Buffer.from(body, "utf8")).digest("hex");
    expect(idOf({ MessageBody: body })).toBe(digest);
    expect(idOf({ MessageBody: body, MessageAttributes: { a: 1 }, MessageGroupId: "g" })).toBe(digest);
    expect(idOf({ MessageBody: `${body} ` })).not.toBe(digest);
  });

  it("could have been given explicitly", () => {
    const id = idOf({ MessageBody: "" }) ?? "";
    expect(id).toMatch(sqsFifo.key.syntax?.pattern ?? /$^/);
    expect(id.length).toBeLessThanOrEqual(sqsFifo.defaults.maxKeyLength ?? 0);
  });

  it.each([[{}], [{ MessageBody: 5 }], [{ MessageBody: ["a"] }]])("is none where there is no body: %j", (members) => {
    expect(idOf(members)).toBeNull();
  });
});

describe("what an id counts in", () => {
  const scope = (QueueUrl: unknown, region?: string) => sqsFifo.partition?.(request({ QueueUrl }, region));

  it("is the queue, by whatever URL, in its Region", () => {
    const place = scope("https://sqs.eu-west-1.amazonaws.com/1/a.fifo", "eu-west-1");
    expect(scope("https://eu-west-1.queue.amazonaws.com/1/a.fifo", "eu-west-1")).toBe(place);
    const others = [
      scope("https://sqs.eu-west-1.amazonaws.com/1/b.fifo", "eu-west-1"),
      scope("https://sqs.eu-west-1.amazonaws.com/2/a.fifo", "eu-west-1"),
      scope("https://sqs.eu-west-1.amazonaws.com/1/a.fifo", "eu-west-2"),
      scope("a.fifo", "eu-west-1"),
    ];
    expect(new Set([place, ...others]).size).toBe(5);
  });

  it.each([undefined, "", 5])("is the Region alone where there is no queue: %j", (url) => {
    expect(scope(url, "eu-west-1")).toBe(scope(undefined, "eu-west-1"));
    expect(scope(url)).toBeNull();
  });
});

it("keeps ids for as long as SQS drops duplicates, and compares nothing", () => {
  expect(sqsFifo.defaults).toMatchObject({ retentionMs: 300_000, clientRetryWindowMs: 300_000, compare: "none" });
});
