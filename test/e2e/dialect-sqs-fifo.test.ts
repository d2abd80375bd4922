import { createHash, randomUUID } from "node:crypto";
import {
  SendMessageCommand,
  type SendMessageCommandInput,
  type SendMessageCommandOutput,
  SQSClient,
  SQSServiceException,
} from "@aws-sdk/client-sqs";
import { beforeAll, describe, expect, it } from "vitest";
import { awsCalls, awsConfig, awsErrors, content, expectMetadata, throughFault } from "./support/aws.ts";
import { send as sendRequest } from "./support/client.ts";
import { eventually } from "./support/example.ts";
import { counted, openSdkWorld, type SdkWorld } from "./support/sdk-cases.ts";
import { rowsOf } from "./support/sdk-rows.ts";
import { AN_INVOICE, type SdkHarness, sdkSuite } from "./support/sdk-suite.ts";

// @aws-sdk/client-sqs against the example in its dialect. The SDK never makes a deduplication id; it sends the caller's, or
// in a queue with content-based deduplication none, and compares MD5OfMessageBody with what it sent.

let world: SdkWorld;
let client: SQSClient;

beforeAll(async () => {
  world = await openSdkWorld("sqs-fifo");
  client = new SQSClient(awsConfig(world));
});

const url = (queue: string) => `http://127.0.0.1:4000/1/${queue}.fifo`;
const invoice = (amount = 1_999) => JSON.stringify({ customer_id: "cus_1", amount_minor: amount, currency: "EUR" });

function message(more: Partial<SendMessageCommandInput> = {}): SendMessageCommandInput {
  const MessageDeduplicationId = randomUUID();
  return { QueueUrl: url("invoices"), MessageGroupId: "g", MessageBody: invoice(), MessageDeduplicationId, ...more };
}

const send = (more: Partial<SendMessageCommandInput> = {}, by = client) =>
  by.send(new SendMessageCommand(message(more)));

/** A message without an id, to the queue that makes one of its body. */
const sendContent = (body: string, more: Partial<SendMessageCommandInput> = {}) =>
  send({ QueueUrl: url("content"), MessageBody: body, MessageDeduplicationId: undefined, ...more });

const record = rowsOf({ sdk: "@aws-sdk/client-sqs", profile: "sqs-fifo" });
const { refusal, expectRefusal } = awsErrors(SQSServiceException);

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const md5 = (text: string) => createHash("md5").update(text).digest("hex");

const sent = {
  MessageId: expect.stringMatching(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
  SequenceNumber: expect.stringMatching(/^\d{20}$/),
  MD5OfMessageBody: md5(invoice()),
};

const harness: SdkHarness<SendMessageCommandOutput> = {
  world: () => world,
  pay: (key, what) =>
    send({ MessageDeduplicationId: key ?? undefined, ...(what === "b" && { MessageBody: invoice(5) }) }),
  keyOf: ({ body }) => JSON.parse(body).MessageDeduplicationId,
  effects: AN_INVOICE,
  accepted(given, { attempts }) {
    expect(content(given)).toEqual(sent);
    expectMetadata(given, attempts);
  },
  ...awsCalls,
  record,
  rows: {
    first: { result: "SendMessageResult" },
    cut_before: { result: "SendMessageResult" },
    cut_after: { result: "SendMessageResult" },
    same_key: { result: "SendMessageResult, the first's" },
    other_content: {
      result: "SendMessageResult, the first's; the body is dropped",
      taken(given, first) {
        // The digest is that of the body just sent: the SDK compares.
        expect(content(given)).toEqual({ ...content(first), MD5OfMessageBody: md5(invoice(5)) });
      },
    },
    duplicate: { result: "SendMessageResult, the first's" },
    duplicate_long: {
      variant: "told to come back",
      result: "SendMessageResult, the first's",
      told: ({ status, headers }) =>
        expect([status, headers["x-amzn-query-error"]]).toEqual([503, "RequestThrottled;Sender"]),
    },
    store_down: {
      result: "SQSServiceException 503 ServiceUnavailable",
      requests: 3,
      error: (error) => expectRefusal(error, { name: "ServiceUnavailable", status: 503, attempts: 3 }),
    },
  },
};

sdkSuite(harness);

describe("what the SDK does by itself", () => {
  it("cut_after, without an id: the body's digest is one", async () => {
    world.proxy.plan({ cut: "after" });
    const body = invoice(7);
    const { given, executions, attempts } = await counted(world, () => sendContent(body));
    expect(content(given)).toEqual({ ...sent, MD5OfMessageBody: md5(body) });
    expect(JSON.parse(attempts[1]?.body ?? "")).not.toHaveProperty("MessageDeduplicationId");
    expect([attempts.length, executions]).toEqual([2, 1]);
    record({ case: "cut_after", variant: "content-based", attempts: 2, executions, result: "SendMessageResult" });
  });

  it("comes back after a fault of ours, which is InternalFailure", async () => {
    // Three attempts would be over in a tenth of a second.
    const patient = new SQSClient({ ...awsConfig(world), maxAttempts: 12 });
    const { given, executions, attempts } = await counted(world, () => throughFault(world, () => send({}, patient)));
    expect(content(given)).toEqual(sent);
    expect(attempts[0]?.answer?.headers["x-amzn-query-error"]).toBe("InternalFailure;Receiver");
    expect(executions).toBe(1);
  });
});

describe("what the caller does", () => {
  it("same id in another queue: another message", async () => {
    const id = { MessageDeduplicationId: "travels-1" };
    const first = await send(id);
    const { given, executions } = await counted(world, () => send({ ...id, QueueUrl: url("others") }));
    expect(given.MessageId).not.toBe(first.MessageId);
    expect(executions).toBe(1);
    record({
      case: "same_key",
      variant: "in another queue",
      attempts: 1,
      executions,
      result: "SendMessageResult, a new one",
    });
  });

  it("same queue under another host, and another message group: the same queue", async () => {
    const id = { MessageDeduplicationId: "hosts-1" };
    const first = await send(id);
    const elsewhere = { QueueUrl: "https://queue.example/1/invoices.fifo", MessageGroupId: "h" };
    const { given, executions } = await counted(world, () => send({ ...id, ...elsewhere }));
    expect(content(given)).toEqual(content(first));
    expect(executions).toBe(0);
  });

  it("no id where the body makes one: two bodies are two messages, an id that equals the digest is a duplicate", async () => {
    const body = invoice(11);
    const { given, executions } = await counted(world, async () => [
      await sendContent(body),
      await sendContent(body),
      await sendContent(body, { MessageDeduplicationId: sha256(body) }),
      await sendContent(invoice(12)),
      await sendContent(body, { MessageDeduplicationId: "of-its-own" }),
    ]);
    const [first, second, third, other, own] = given.map(({ MessageId }) => MessageId);
    expect([second, third]).toEqual([first, first]);
    expect(new Set([first, other, own]).size).toBe(3);
    expect(executions).toBe(3);
  });

  it.each([
    ["no id in a queue that needs one", { MessageDeduplicationId: undefined }, "InvalidParameterValue"],
    ["an id of 129 characters", { MessageDeduplicationId: "k".repeat(129) }, "InvalidParameterValue"],
    ["an id with a space", { MessageDeduplicationId: "two words" }, "InvalidParameterValue"],
    ["no group", { MessageGroupId: undefined }, "MissingParameter"],
    ["a body that is no invoice", { MessageBody: "hello" }, "InvalidParameterValue"],
    [
      "attributes, which would be lost",
      { MessageAttributes: { a: { DataType: "String", StringValue: "b" } } },
      "InvalidParameterValue",
    ],
    ["a queue that is not FIFO", { QueueUrl: "http://127.0.0.1/1/plain" }, "QueueDoesNotExist"],
  ])("is refused with %s", async (_what, wrong, name) => {
    const { given, executions } = await counted(world, () => refusal(send(wrong)));
    expect(given).toMatchObject({ $fault: "client", $metadata: { httpStatusCode: 400, attempts: 1 } });
    expect([given.name, executions]).toEqual([name, 0]);
  });

  it("takes ids of 128 letters, digits and punctuation", async () => {
    const id = { MessageDeduplicationId: `!"#$%&'()*+,-./:;<=>?@[\\]^_\`{|}~${"k".repeat(96)}` };
    expect(id.MessageDeduplicationId).toHaveLength(128);
    const { executions } = await counted(world, async () => [await send(id), await send(id)]);
    expect(executions).toBe(1);
  });

  it("is refused with another secret, before any id is looked at", async () => {
    const stranger = new SQSClient(awsConfig(world, { secret: "guessed" }));
    const { given, executions } = await counted(world, () => refusal(send({}, stranger)));
    expect(given).toMatchObject({ name: "InvalidClientTokenId", $metadata: { httpStatusCode: 403 } });
    expect(executions).toBe(0);
  });
});

describe("after the window", () => {
  it("the same id with another body is another message", async () => {
    const short = await openSdkWorld("sqs-fifo", { env: { ONCEKEY_RETENTION_MS: "1000" } });
    const by = new SQSClient(awsConfig(short));
    const id = { MessageDeduplicationId: "window-1" };
    const first = await send(id, by);
    await eventually("the window is over", 20_000, async () => {
      const rows = await short.lab.sql("SELECT FROM oncekey.entry WHERE expires_at > clock_timestamp()");
      return rows.length === 0;
    });
    const { given, executions } = await counted(short, () => send({ ...id, MessageBody: invoice(5) }, by));
    expect(given.MessageId).not.toBe(first.MessageId);
    expect(given.MD5OfMessageBody).toBe(md5(invoice(5)));
    expect(executions).toBe(1);
    const result = "SendMessageResult, a new one";
    record({ case: "other_content", variant: "after the window", attempts: 1, executions, result });
  });
});

describe("the API's own routes", () => {
  it("speak the dialect too: the id as a query parameter, nothing compared, five minutes", async () => {
    const invoices = `${world.api.url}/v1/invoices`;
    const first = await sendRequest("POST", `${invoices}?MessageDeduplicationId=own-1`, { body: invoice() });
    const other = await sendRequest("POST", `${invoices}?MessageDeduplicationId=own-1`, { body: invoice(6) });
    expect([first.status, other.status]).toEqual([201, 201]);
    expect(other.text).toBe(first.text);
    expect(first.headers["idempotency-retention"]).toBe("300");
    const refused = await sendRequest("POST", invoices, { body: invoice() });
    expect([refused.status, refused.json().__type]).toEqual([400, "com.amazonaws.sqs#InvalidParameterValue"]);
  });
});
