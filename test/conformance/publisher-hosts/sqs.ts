import { randomUUID } from "node:crypto";
import { type Message, SQS } from "@aws-sdk/client-sqs";
import { startFauxqs } from "fauxqs";
import { sqsPublisher } from "oncekey/publishers/sqs";
import type { ArrivedMessage, PublisherHarness } from "oncekey/testing";
import { arrivedFrom, behindProxy } from "./outage.ts";

const credentials = { accessKeyId: "AKIAEXAMPLE", secretAccessKey: "hush-hush-secret" };

/** A queue of its own on an SQS of its own, inside this process. */
export async function sqsHarness(kind: "fifo" | "standard"): Promise<PublisherHarness> {
  const server = await startFauxqs({ port: 0, host: "127.0.0.1", logger: false });
  const { proxy, outage } = await behindProxy(server.port);
  const queue = `suite-${randomUUID()}${kind === "fifo" ? ".fifo" : ""}`;
  const attributes = kind === "fifo" ? { FifoQueue: "true" } : undefined;
  const { queueUrl } = server.createQueue(queue, attributes === undefined ? {} : { attributes });
  const clientOf = (port: number) =>
    new SQS({ endpoint: `http://127.0.0.1:${port}`, region: "us-east-1", credentials, maxAttempts: 1 });
  const client = clientOf(proxy.port);
  const observer = clientOf(server.port);
  const arrived: ArrivedMessage[] = [];
  return {
    publisher: sqsPublisher({ client, queueUrl }),
    ...outage,
    async arrived() {
      const found = await observer.receiveMessage({
        QueueUrl: queueUrl,
        MaxNumberOfMessages: 10,
        MessageAttributeNames: ["All"],
      });
      for (const message of found.Messages ?? []) {
        arrived.push(arrivedOf(message));
        await observer.deleteMessage({ QueueUrl: queueUrl, ReceiptHandle: message.ReceiptHandle });
      }
      return arrived;
    },
    tooLarge: 1_100_000,
    secrets: Object.values(credentials),
    async close() {
      client.destroy();
      observer.destroy();
      await proxy.close();
      await server.stop();
    },
  };
}

function arrivedOf({ MessageAttributes = {}, Body = "" }: Message): ArrivedMessage {
  return arrivedFrom((name) => MessageAttributes[name]?.StringValue, Body);
}
