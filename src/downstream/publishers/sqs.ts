import { createHash } from "node:crypto";
import { dead, delivered, type OutboxMessage, type Published, type Publisher } from "../publisher.ts";
import { attempt, causes, type Destined, destined } from "./_attempt.ts";
import { envelope } from "./_envelope.ts";

/** What is sent to SQS. */
export interface SqsInput {
  QueueUrl: string;
  MessageBody: string;
  MessageAttributes: Record<string, { DataType: "String"; StringValue: string }>;
  MessageDeduplicationId?: string;
  MessageGroupId?: string;
}

/** What is used of the AWS SDK (version 3): its `SQS` class as it is. */
export interface SqsClient {
  sendMessage(input: SqsInput, options: { abortSignal: AbortSignal }): Promise<unknown>;
}

/** Where messages go in SQS. */
export interface SqsOptions {
  /** The application's own client; see {@link SqsClient} for what of it is used. */
  readonly client: SqsClient;
  /** A queue whose name ends in `.fifo` gets deduplication and group ids. */
  readonly queueUrl: Destined;
}

/** https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html: MessageGroupId. */
const MAX_GROUP_LENGTH = 128;

/**
 * Publishes to SQS. In a FIFO queue the deduplication id is the message's id, so that a redelivery within SQS' five
 * minutes is dropped there, and the group is tenant and `orderBy`, or the id where no order is asked for. A standard
 * queue keeps every redelivery: consumers dedupe by the attribute `oncekey-id`.
 */
export function sqsPublisher(options: SqsOptions): Publisher {
  return {
    name: "sqs",
    publish: (message, signal) =>
      attempt(
        "SQS",
        signal,
        async () => {
          await options.client.sendMessage(inputOf(message, options), { abortSignal: signal });
          return delivered();
        },
        judged,
      ),
  };
}

function inputOf(message: OutboxMessage, { queueUrl }: SqsOptions): SqsInput {
  const url = destined(queueUrl, message);
  const attributes = Object.entries(envelope(message)).map(
    ([name, value]) => [name, { DataType: "String", StringValue: value }] as const,
  );
  return {
    QueueUrl: url,
    MessageBody: message.payload,
    MessageAttributes: Object.fromEntries(attributes),
    ...(url.endsWith(".fifo") ? { MessageDeduplicationId: message.id, MessageGroupId: groupOf(message) } : {}),
  };
}

/** Only letters, digits and punctuation may be in a group id, so the parts are encoded; a long one becomes its digest. */
function groupOf({ tenant, orderBy, id }: OutboxMessage): string {
  if (orderBy === null) return id;
  const group = `${encodeURIComponent(tenant)}/${encodeURIComponent(orderBy)}`;
  return group.length <= MAX_GROUP_LENGTH ? group : createHash("sha256").update(group).digest("base64url");
}

function judged(error: unknown): Published | null {
  for (const one of causes(error)) {
    const { name, message } = one as { name?: unknown; message?: unknown };
    // The older protocol's names have a prefix, such as AWS.SimpleQueueService.
    const named = String(name).split(".").at(-1);
    const isTooLarge = named === "InvalidParameterValue" && /must be shorter than/i.test(String(message));
    if (isTooLarge) return dead("The message is larger than the queue allows.");
    if (named === "InvalidMessageContents") return dead("The message holds characters that SQS does not accept.");
  }
  return null;
}
