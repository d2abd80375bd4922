import { type Message, SQS } from "@aws-sdk/client-sqs";
import { type Consumer, deliveryOf, main, report, setting, takeIn, tell } from "./consumer.ts";

// SQS, standard or FIFO: a message is hidden from others while it is worked on, for longer and longer, and deleted once
// its effect is committed. What fails is left alone: the queue's redrive policy moves it to a dead-letter queue.
//
// A FIFO queue drops duplicates for five minutes only, and a redelivery is no duplicate to it: the inbox is needed there, too.

const VISIBILITY_S = Number(setting("CONSUMER_VISIBILITY_S", "30"));

interface Queue {
  readonly sqs: SQS;
  readonly url: string;
}

async function loop(consumer: Consumer): Promise<void> {
  const queue: Queue = { sqs: new SQS({ endpoint: setting("SQS_ENDPOINT") }), url: setting("CONSUMER_QUEUE") };
  tell({ ready: queue.url });
  while (!consumer.stopping.aborted) {
    const messages = await receive(queue, consumer.stopping);
    for (const message of messages) await handle(consumer, queue, message);
  }
  queue.sqs.destroy();
}

/** One at a time: those behind it in a batch would use up their visibility while they wait. */
async function receive({ sqs, url }: Queue, abortSignal: AbortSignal): Promise<Message[]> {
  const request = {
    QueueUrl: url,
    MaxNumberOfMessages: 1,
    WaitTimeSeconds: 10,
    VisibilityTimeout: VISIBILITY_S,
    MessageAttributeNames: ["All"],
  };
  try {
    return (await sqs.receiveMessage(request, { abortSignal })).Messages ?? [];
  } catch (error) {
    if (abortSignal.aborted) return [];
    throw error;
  }
}

async function handle(consumer: Consumer, queue: Queue, message: Message): Promise<void> {
  const { MessageAttributes = {}, Body = "", ReceiptHandle } = message;
  const working = setInterval(() => hide(queue, message, VISIBILITY_S).catch(report), (VISIBILITY_S * 1_000) / 3);
  try {
    // The URL names account and region; the last part of its path is the queue's name.
    const source = queue.url.slice(queue.url.lastIndexOf("/") + 1);
    const delivery = deliveryOf(source, (name) => MessageAttributes[name]?.StringValue);
    const verdict = await takeIn(consumer, { delivery, payload: Body });
    if (verdict === "leave") return await hide(queue, message, 0);
    await queue.sqs.deleteMessage({ QueueUrl: queue.url, ReceiptHandle });
  } catch (error) {
    report(error);
  } finally {
    clearInterval(working);
  }
}

async function hide({ sqs, url }: Queue, { ReceiptHandle }: Message, seconds: number): Promise<void> {
  await sqs.changeMessageVisibility({ QueueUrl: url, ReceiptHandle, VisibilityTimeout: seconds });
}

main(loop);
