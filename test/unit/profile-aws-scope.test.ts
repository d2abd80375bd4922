import { describe, expect, it } from "vitest";
import { parsePairs } from "../../src/core/body/form.ts";
import type { ProfileRequest } from "../../src/http/profile-request.ts";
import { awsEc2 } from "../../src/http/profiles/aws-ec2.ts";
import { awsJson } from "../../src/http/profiles/aws-json.ts";

type Headers = Readonly<Record<string, string>>;

/** A request with these headers, and members as a query writes them. */
function request(members = "", headers: Headers = {}): ProfileRequest {
  const read = Object.fromEntries(parsePairs(members));
  return {
    method: "POST",
    target: "/",
    bytes: null,
    headerLines: (name) => (headers[name] === undefined ? [] : [headers[name]]),
    member: (name) => read[name],
  };
}

const signed = (region: string) => ({
  authorization: `AWS4-HMAC-SHA256 Credential=AKID/20261130/${region}/ec2/aws4_request, SignedHeaders=host, Signature=00`,
});

describe("the Region that a request's key counts in", () => {
  it.each<[string, ProfileRequest, string | null]>([
    ["what it was signed for", request("", signed("eu-west-1")), "eu-west-1"],
    [
      "what it was presigned for",
      request("X-Amz-Credential=AKID%2F20261130%2Fap-south-1%2Fec2%2Faws4_request"),
      "ap-south-1",
    ],
    [
      "what it was signed for rather than what its host names",
      request("", { ...signed("eu-west-1"), host: "ec2.us-east-1.amazonaws.com" }),
      "eu-west-1",
    ],
    ["what its host names", request("", { host: "ec2.us-east-1.amazonaws.com" }), "us-east-1"],
    ["what its host names, in China", request("", { host: "EC2.cn-north-1.amazonaws.com.cn:443" }), "cn-north-1"],
    ["what its host names, with IPv6", request("", { host: "ec2.us-gov-west-1.api.aws" }), "us-gov-west-1"],
    ["none, by another host", request("", { host: "ec2.us-east-1.amazonaws.com.example" }), null],
    [
      "none, by a bearer token",
      request("", { authorization: "Bearer AKID/20261130/eu-west-1/ec2/aws4_request" }),
      null,
    ],
    ["none, by a credential of another form", request("", signed("eu west/1")), null],
  ])("%s", (_what, asked, region) => {
    expect(awsJson.partition?.(asked)).toBe(region);
  });
});

describe("what an EC2 token counts in", () => {
  const scope = (members: string, headers: Headers = signed("eu-west-1")) =>
    awsEc2.partition?.(request(members, headers));

  it("is the action, the Region and the zone that the request names", () => {
    const places = [
      scope("Action=RunInstances"),
      scope("Action=RunInstances", signed("eu-west-2")),
      scope("Action=RunInstances&Placement.AvailabilityZone=eu-west-1a"),
      scope("Action=RunInstances&Placement.AvailabilityZone=eu-west-1b"),
      scope("Action=CreateVolume&AvailabilityZone=eu-west-1a"),
      scope("Action=AllocateHosts&AvailabilityZone=eu-west-1a"),
    ];
    expect(new Set(places).size).toBe(places.length);
  });

  it("does not depend on anything else", () => {
    const place = scope("Action=CreateVolume&AvailabilityZone=eu-west-1a");
    expect(scope("Action=CreateVolume&AvailabilityZone=eu-west-1a&Size=9&SubnetId=s")).toBe(place);
  });

  it("never takes the parts of one for those of another", () => {
    expect(scope('Action=a","b', {})).not.toBe(scope("Action=a", signed("b")));
    expect(scope("AvailabilityZone=eu-west-1", {})).not.toBe(scope(""));
  });

  it("is everywhere for a request that names none of them", () => {
    expect(scope("", {})).toBeNull();
    expect(scope("Action=", {})).toBeNull();
  });
});
