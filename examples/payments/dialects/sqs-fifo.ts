import { createHash } from "node:crypto";
import type { Request } from "express";
import type { OperationResponse, Outcome, ProfileRequest } from "oncekey";
import { idempotent } from "oncekey/express";
import { callerOf } from "../auth.ts";
import { parseExact } from "../exact-json.ts";
import type { Invoice } from "../operations/invoices.ts";
import { awsAnswer, outcomeValue, sendAwsError } from "./_aws-json.ts";
import { mountAws } from "./_aws-route.ts";
import type { DialectParts, MountDialect } from "./index.ts";

/**
 * Amazon SQS's `POST /` for `SendMessage` to a FIFO queue: a message is an invoice to be made, as JSON. A queue whose name
 * ends in `content.fifo` has content-based deduplication. Access keys are the API's tokens, see `_aws-auth.ts`.
 */
export const mountSqsFifo: MountDialect = (app, parts) => {
  const { byId, byContent } = queuesOf(parts);
  mountAws(app, parts, {
    unsigned: refusal(403, "InvalidClientTokenId", "The access key or the signature is not valid."),
    fault: "InternalFailure",
    sendError(response, error) {
      const fault = error.status >= 500 ? "Receiver" : "Sender";
      const headers = { "x-amzn-query-error": `${error.code};${fault}` };
      sendAwsError(response, error, `com.amazonaws.sqs#${error.code}`, headers);
    },
    actionOf(request) {
      if (request.get("x-amz-target") !== "AmazonSQS.SendMessage") {
        return refusal(400, "UnsupportedOperation", "This API only sends messages.");
      }
      const { QueueUrl, MessageGroupId } = membersOf(String(request.body));
      if (typeof QueueUrl !== "string" || !QueueUrl.endsWith(".fifo")) {
        return refusal(400, "AWS.SimpleQueueService.NonExistentQueue", "This API has FIFO queues only.");
      }
      if (typeof MessageGroupId !== "string" || MessageGroupId === "") {
        return refusal(400, "MissingParameter", "A message of a FIFO queue needs a MessageGroupId.");
      }
      return QueueUrl.endsWith("content.fifo") ? byContent : byId;
    },
  });
};

const refusal = (status: number, code: string, message: string) => ({ status, code, message });

function queuesOf({ operations }: DialectParts) {
  const options = { scope: callerOf, form: { input: invoiceOf, answer: receipt } };
  return {
    byId: idempotent<Request>(operations.createInvoice, options),
    byContent: idempotent<Request>(operations.createInvoice, { ...options, requireKey: false }),
  };
}

/** The members of a body; none where it is not an object of JSON, which the queue then refuses. */
function membersOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

/** The message's invoice. What the operation does not know is refused by it: attributes would be lost in silence. */
function invoiceOf(body: unknown): unknown {
  const { MessageBody, MessageAttributes } = body as Readonly<Record<string, unknown>>;
  try {
    const invoice = parseExact(String(MessageBody)) as object;
    return MessageAttributes === undefined ? invoice : { ...invoice, MessageAttributes };
  } catch {
    return null;
  }
}

/**
 * The same message and number for each duplicate, but the digest of the body that *this* request brought: the SDKs compare
 * it with what they sent.
 */
function receipt(outcome: Outcome, request: ProfileRequest): OperationResponse {
  const { id, created_at } = outcomeValue(outcome) as Invoice;
  const digest = createHash("md5")
    .update(String(request.member("MessageBody")))
    .digest("hex");
  return awsAnswer(request, 200, {
    MD5OfMessageBody: digest,
    MessageId: uuidOf(id),
    SequenceNumber: sequenceNumber(id, created_at),
  });
}

/** `inv_` and 32 digits, which are a UUID's. */
function uuidOf(id: string): string {
  return id.replace(/^inv_(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** 20 digits that grow with the millisecond of the invoice; two of one millisecond are told apart, not ordered. */
function sequenceNumber(id: string, createdAt: string): string {
  const tail = createHash("sha256").update(id).digest().readUInt32BE() % 10_000_000;
  return `${Date.parse(createdAt)}${String(tail).padStart(7, "0")}`;
}
