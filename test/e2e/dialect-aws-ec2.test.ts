import { beforeAll, describe, expect, it } from "vitest";
import { ec2 } from "../peers/vendor-sdks/sdks.ts";
import { afterAnswer, awsCalls, awsConfig, awsErrors, content, expectMetadata, throughFault } from "./support/aws.ts";
import { behave, send } from "./support/client.ts";
import { counted, openSdkWorld, type SdkWorld } from "./support/sdk-cases.ts";
import { rowsOf } from "./support/sdk-rows.ts";
import { A_CHARGE, AN_INVOICE, type SdkHarness, sdkSuite } from "./support/sdk-suite.ts";

// @aws-sdk/client-ec2 against the example in its dialect. The SDK makes a ClientToken for each call and sends it again, with
// the same bytes, in each retry of its own; the signature and its date are new each time.

let world: SdkWorld;
let client: ec2.EC2Client;

beforeAll(async () => {
  world = await openSdkWorld("aws-ec2");
  client = new ec2.EC2Client(awsConfig(world));
});

const instances = {
  ImageId: "ami-1",
  InstanceType: "t3.micro",
  MinCount: 1,
  MaxCount: 2,
  KeyName: "tok_visa",
} as const;
const volume = { Size: 10, AvailabilityZone: "eu-central-1a" } as const;

const run = (more: Partial<ec2.RunInstancesCommandInput> = {}, by = client) =>
  by.send(new ec2.RunInstancesCommand({ ...instances, ...more }));
const create = (more: Partial<ec2.CreateVolumeCommandInput> = {}, by = client) =>
  by.send(new ec2.CreateVolumeCommand({ ...volume, ...more }));

const record = rowsOf({ sdk: "@aws-sdk/client-ec2", project: "vendor-sdks", profile: "aws-ec2" });
const { refusal, expectRefusal } = awsErrors(ec2.EC2ServiceException);

const launched = {
  ReservationId: expect.stringMatching(/^r-[0-9a-f]{17}$/),
  Instances: [0, 1].map((at) =>
    expect.objectContaining({
      InstanceId: expect.stringMatching(/^i-[0-9a-f]{17}$/),
      AmiLaunchIndex: at,
      ImageId: "ami-1",
      InstanceType: "t3.micro",
      State: { Code: 0, Name: "pending" },
    }),
  ),
};

const made = {
  VolumeId: expect.stringMatching(/^vol-[0-9a-f]{17}$/),
  Size: 10,
  AvailabilityZone: "eu-central-1a",
  State: "creating",
  CreateTime: expect.any(Date),
};

const tokenOf = ({ body }: { readonly body: string }) => new URLSearchParams(body).get("ClientToken");

/** What both actions have in common. */
const common = {
  world: () => world,
  minted: /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  keyOf: tokenOf,
  ...awsCalls,
  // Each answer names its own request.
  kept: (body: string) => body.replace(/<requestId>[^<]+<\/requestId>/, ""),
  record,
};

const runInstances: SdkHarness<ec2.RunInstancesCommandOutput> = {
  ...common,
  name: "RunInstances",
  pay: (key, what) => run({ ...(key !== null && { ClientToken: key }), ...(what === "b" && { MaxCount: 1 }) }),
  effects: A_CHARGE,
  accepted(given, { attempts }) {
    expect(given).toMatchObject(launched);
    expectMetadata(given, attempts);
    expect(given.Instances?.[0]?.ClientToken).toBe(attempts[0] && tokenOf(attempts[0]));
  },
  rows: {
    first: { result: "RunInstancesResult" },
    cut_before: { result: "RunInstancesResult" },
    cut_after: { result: "RunInstancesResult" },
    same_key: { result: "RunInstancesResult, the first's" },
    other_content: {
      result: "EC2ServiceException 400 IdempotentParameterMismatch",
      error: (error) =>
        expectRefusal(error, {
          name: "IdempotentParameterMismatch",
          status: 400,
          attempts: 1,
          message: "key was first used for another request",
        }),
    },
  },
};

const createVolume: SdkHarness<ec2.CreateVolumeCommandOutput> = {
  ...common,
  name: "CreateVolume",
  pay: (key) => create(key === null ? {} : { ClientToken: key }),
  effects: AN_INVOICE,
  accepted(given, { attempts }) {
    expect(content(given)).toMatchObject(made);
    expectMetadata(given, attempts);
  },
  rows: {
    duplicate: { result: "CreateVolumeResult, the first's" },
    duplicate_long: {
      variant: "told to come back",
      result: "CreateVolumeResult, the first's",
      told: ({ status, body }) =>
        expect([status, body]).toEqual([503, expect.stringContaining("<Code>PriorRequestNotComplete</Code>")]),
    },
    store_down: {
      result: "EC2ServiceException 503 ServiceUnavailable",
      requests: 3,
      error: (error) => expectRefusal(error, { name: "ServiceUnavailable", status: 503, attempts: 3 }),
    },
  },
};

sdkSuite(runInstances, createVolume);

describe("what the SDK does by itself", () => {
  it("goes on where the first attempt ended once the provider is back", async () => {
    const down = (is: boolean) => behave(world.lab.psp.url, { down: is });
    const { given, executions, attempts } = await counted(world, async () => {
      await down(true);
      return afterAnswer(world, 503, run, () => down(false));
    });
    expect(given).toMatchObject(launched);
    expect(attempts[0]?.answer?.body).toContain("It is not known yet what the first request did");
    expect(executions).toBe(1);
  });

  it("comes back after a fault of ours, which is EC2's InternalError", async () => {
    // Three attempts would be over in a tenth of a second.
    const patient = new ec2.EC2Client({ ...awsConfig(world), maxAttempts: 12 });
    const { given, executions, attempts } = await counted(world, () => throughFault(world, () => create({}, patient)));
    expect(content(given)).toMatchObject(made);
    const [fault] = attempts;
    expect(fault?.answer?.body).toMatch(/^<\?xml.*\?>\n<Response><Errors><Error><Code>InternalError<\/Code>/);
    expect(fault?.answer?.headers["x-amzn-requestid"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(executions).toBe(1);
  });

  it("store down for a moment: its own retry succeeds", async () => {
    world.database.down();
    const { given, executions, attempts } = await counted(world, () =>
      afterAnswer(world, 503, create, world.database.up),
    );
    expect(content(given)).toMatchObject(made);
    expect(new Set(attempts.map(tokenOf)).size).toBe(1);
    expect([attempts.length, executions]).toEqual([2, 1]);
    record({ case: "store_down", variant: "for a moment", attempts: 2, executions, result: "CreateVolumeResult" });
  });
});

describe("what the caller does", () => {
  it.each([
    ["another zone", (token: object) => create({ ...token, AvailabilityZone: "eu-central-1b" })],
    [
      "another Region",
      (token: object) => create(token, new ec2.EC2Client({ ...awsConfig(world), region: "eu-west-1" })),
    ],
  ])("same token in %s: it is another one", async (where, elsewhere) => {
    const token = { ClientToken: `travels to ${where}` };
    const first = await create(token);
    const { given, executions } = await counted(world, () => elsewhere(token));
    expect(given.VolumeId).not.toBe(first.VolumeId);
    expect(executions).toBe(1);
    record({
      case: "same_key",
      variant: `in ${where}`,
      attempts: 1,
      executions,
      result: "CreateVolumeResult, a new one",
    });
  });

  it("same token for another action: it is another one", async () => {
    const token = { ClientToken: "two actions" };
    await run(token);
    const { given, executions } = await counted(world, () => create(token));
    expect(content(given)).toMatchObject(made);
    expect(executions).toBe(1);
  });

  it("same token after a refusal: it was not used up, and the provider is asked anew", async () => {
    const declined = { ClientToken: "declined-1", KeyName: "tok_declined" };
    const { given, effects } = await counted(world, async () => [
      await refusal(run(declined)),
      await refusal(run(declined)),
    ]);
    for (const error of given) {
      expect(error).toMatchObject({ name: "PaymentDeclined", $metadata: { httpStatusCode: 400, attempts: 1 } });
    }
    expect(effects).toMatchObject({ charges: 2, authorizations: 2, captures: 0 });
    expect(content(await run({ ...declined, KeyName: "tok_visa" }))).toMatchObject(launched);
  });

  it.each([
    ["a token that is too long", { ClientToken: "k".repeat(65) }],
    ["a size that is none", { Size: 0 }],
  ])("is refused with %s, and nothing is kept", async (_what, wrong) => {
    const { given, executions } = await counted(world, () => refusal(create(wrong)));
    expect(given).toMatchObject({ name: "InvalidParameterValue", $metadata: { httpStatusCode: 400, attempts: 1 } });
    expect(executions).toBe(0);
  });

  it("keeps the tokens of tenants apart", async () => {
    const token = { ClientToken: "shared-1" };
    const globex = new ec2.EC2Client(awsConfig(world, { accessKeyId: "sk_test_globex" }));
    const { executions } = await counted(world, () => Promise.all([create(token), create(token, globex)]));
    expect(executions).toBe(2);
  });
});

describe("the API's own routes", () => {
  it("speak the dialect too: the token as a query parameter, XML for its refusals", async () => {
    const invoices = `${world.api.url}/v1/invoices?ClientToken=own-1`;
    const body = { customer_id: "cus_1", amount_minor: 5, currency: "EUR" };
    const first = await send("POST", invoices, { body });
    const again = await send("POST", invoices, { body });
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(again.text).toBe(first.text);
    const other = await send("POST", invoices, { body: { ...body, amount_minor: 6 } });
    expect([other.status, other.headers["content-type"]]).toEqual([400, "text/xml;charset=UTF-8"]);
    expect(other.text).toContain("<Code>IdempotentParameterMismatch</Code>");
  });
});
