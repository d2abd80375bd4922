import { randomUUID } from "node:crypto";
import { SendMessageCommand, SQSClient, SQSServiceException } from "@aws-sdk/client-sqs";
import { beforeAll, describe, expect, it } from "vitest";
import { type AwsOutput, awsCalls, awsConfig, awsErrors, expectMetadata } from "./support/aws.ts";
import { send as sendRequest } from "./support/client.ts";
import { counted, openSdkWorld, type SdkWorld } from "./support/sdk-cases.ts";
import type { SdkAttempt } from "./support/sdk-proxy.ts";
import { rowsOf } from "./support/sdk-rows.ts";
import { A_CHARGE, AN_INVOICE, type SdkHarness, sdkSuite } from "./support/sdk-suite.ts";

// AWS's JSON protocol as its SDKs speak it. There is no SDK for the example's own service, so @aws-sdk/client-sqs lends
// its protocol, signature and retries: a middleware puts our target and members in place of those of SendMessage.

let world: SdkWorld;
let client: SQSClient;

beforeAll(async () => {
  world = await openSdkWorld("aws-json");
  client = paymentsClient(awsConfig(world));
});

type Members = Readonly<Record<string, unknown>>;

interface HttpRequest {
  headers: Record<string, string>;
  body: Uint8Array;
}

/** A client of the example's service. The members of a request travel in `MessageBody`. */
function paymentsClient(config: ConstructorParameters<typeof SQSClient>[0]): SQSClient {
  const made = new SQSClient({ ...config, md5: false });
  made.middlewareStack.add(
    (next) => async (args) => {
      const request = args.request as HttpRequest;
      const { target, ...members } = JSON.parse(
        JSON.parse(new TextDecoder().decode(request.body)).MessageBody,
      ) as Members;
      request.body = new TextEncoder().encode(JSON.stringify(members));
      request.headers["x-amz-target"] = `Payments.${String(target)}`;
      return next(args);
    },
    // Before the content is measured and signed.
    { step: "build", priority: "high" },
  );
  return made;
}

const call = (target: string, members: Members, by = client) =>
  by.send(new SendMessageCommand({ QueueUrl: undefined, MessageBody: JSON.stringify({ target, ...members }) }));

const invoice = { CustomerId: "cus_1", AmountMinor: 1_999, Currency: "EUR" };
const charge = { AmountMinor: 1_999, Currency: "EUR", Source: "tok_visa" };
const create = (more: Members = {}, by = client) =>
  call("CreateInvoice", { ...invoice, ClientToken: randomUUID(), ...more }, by);
const pay = (more: Members = {}) => call("CreateCharge", { ...charge, ClientRequestToken: randomUUID(), ...more });

const { refusal, expectRefusal } = awsErrors(SQSServiceException);

const TYPE = "application/x-amz-json-1.0";
const made = { InvoiceId: expect.stringMatching(/^inv_/), Status: "draft", AmountMinor: 1_999 };
const charged = { ChargeId: expect.stringMatching(/^ch_/), Status: "succeeded", AmountMinor: 1_999 };

/** This SDK shows none of our members: what the API answered says whether a call succeeded. */
function expectAnswered(given: AwsOutput, attempts: readonly SdkAttempt[], expected: object): void {
  const answer = attempts.at(-1)?.answer;
  expect([answer?.headers["content-type"], JSON.parse(answer?.body ?? "")]).toEqual([TYPE, expected]);
  expectMetadata(given, attempts);
}

const MISMATCH = "IdempotentParameterMismatchException";

const createInvoice: SdkHarness<AwsOutput> = {
  name: "CreateInvoice",
  world: () => world,
  pay: (key, content) => create({ ClientToken: key, ...(content === "b" && { AmountMinor: 1 }) }),
  keyOf: ({ body }) => JSON.parse(body).ClientToken,
  effects: AN_INVOICE,
  accepted: (given, { attempts }) => expectAnswered(given, attempts, made),
  ...awsCalls,
  record: rowsOf({ sdk: "@aws-sdk/client-sqs", profile: "aws-json" }),
  rows: {
    first: { result: "200" },
    cut_before: { result: "200" },
    cut_after: { result: "200" },
    other_content: {
      result: `400 ${MISMATCH}`,
      error(error, { attempts }) {
        const message = "key was first used for another request";
        expectRefusal(error, { name: MISMATCH, status: 400, attempts: 1, message });
        expect(attempts[0]?.answer?.headers["x-amzn-errortype"]).toBe(MISMATCH);
      },
    },
    duplicate: { result: "200, the first's" },
    duplicate_long: {
      variant: "told to come back",
      result: "200, the first's",
      // A 400 that the SDK sends again, by the error's name.
      told: ({ status, body }) =>
        expect([status, JSON.parse(body).__type]).toEqual([400, "TransactionInProgressException"]),
    },
    store_down: {
      result: "503 ServiceUnavailableException",
      requests: 3,
      error: (error) => expectRefusal(error, { name: "ServiceUnavailableException", status: 503, attempts: 3 }),
    },
  },
};

/** The same token for an invoice and for a charge, which is another operation. */
const bothOperations: SdkHarness<readonly [AwsOutput, AwsOutput]> = {
  name: "CreateInvoice and CreateCharge",
  world: () => world,
  pay: async (key) => [await create({ ClientToken: key }), await pay({ ClientRequestToken: key })],
  keyOf: ({ body }) => JSON.parse(body).ClientToken ?? JSON.parse(body).ClientRequestToken,
  effects: { ...A_CHARGE, invoices: 1 },
  accepted([invoiced, paid], { attempts }) {
    expectAnswered(invoiced, attempts.slice(0, 1), made);
    expectAnswered(paid, attempts.slice(1), charged);
  },
  shown: (both) => both.map(awsCalls.shown),
  requestIdOf: ([invoiced]) => awsCalls.requestIdOf(invoiced),
  record: createInvoice.record,
  rows: { same_key: { variant: "of two operations", result: "200, each operation's first" } },
};

sdkSuite(createInvoice, bothOperations);

describe("what the caller does", () => {
  it.each(["clientToken", "IdempotencyToken"])("the token may be called %s", async (name) => {
    const named = { [name]: `named ${name}`, ClientToken: undefined };
    const { executions } = await counted(world, async () => [await create(named), await create(named)]);
    expect(executions).toBe(1);
  });

  it("is refused with tokens of two names", async () => {
    const { given, executions } = await counted(world, () => refusal(create({ clientToken: "another" })));
    expect(given).toMatchObject({ name: "ValidationException", $metadata: { httpStatusCode: 400, attempts: 1 } });
    expect(executions).toBe(0);
  });

  it("runs each request without a token for itself", async () => {
    const bare = { ClientToken: undefined };
    const { executions } = await counted(world, async () => [await create(bare), await create(bare)]);
    expect(executions).toBe(2);
  });

  it("same token after a refusal: it was not used up", async () => {
    const token = { ClientRequestToken: "declined-1" };
    const first = await refusal(pay({ ...token, Source: "tok_declined" }));
    expect(first).toMatchObject({ name: "CardDeclinedException", $metadata: { httpStatusCode: 400 } });
    const { effects } = await counted(world, () => pay(token));
    expect(effects).toMatchObject({ charges: 1, captures: 1 });
  });

  it.each([
    ["another secret", "CreateInvoice", { secret: "guessed" }, "UnrecognizedClientException"],
    ["an operation that there is not", "CreateNothing", {}, "UnknownOperationException"],
  ])("is refused with %s", async (_what, target, credentials, name) => {
    const by = paymentsClient(awsConfig(world, credentials));
    const { given, executions } = await counted(world, () => refusal(call(target, invoice, by)));
    expect(given).toMatchObject({ name, $metadata: { httpStatusCode: 400 } });
    expect(executions).toBe(0);
  });
});

describe("the API's own routes", () => {
  it("speak the dialect too: the token as a query parameter, AWS's JSON for refusals", async () => {
    const invoices = `${world.api.url}/v1/invoices?ClientToken=own-1`;
    const body = { customer_id: "cus_1", amount_minor: 5, currency: "EUR" };
    const [first, again] = [
      await sendRequest("POST", invoices, { body }),
      await sendRequest("POST", invoices, { body }),
    ];
    expect([first.status, again.text]).toEqual([201, first.text]);
    const other = await sendRequest("POST", invoices, { body: { ...body, amount_minor: 6 } });
    expect([other.status, other.headers["content-type"]]).toEqual([400, "application/x-amz-json-1.1"]);
    expect(other.json()).toEqual({
      __type: "IdempotentParameterMismatchException",
      message: expect.stringContaining("another request"),
    });
  });
});
