import { once as event } from "node:events";
import { type Channel, type ConsumeMessage, connect } from "amqplib";
import { type Consumer, deliveryOf, main, report, setting, takeIn, tell } from "./consumer.ts";

// RabbitMQ: a quorum queue with a limit of deliveries, after which a message goes to <queue>.dead. A message is
// acknowledged once its effect is committed; whatever kills the process before that leads to a redelivery, and to nothing
// more. A lost connection ends the process: whoever runs it starts it again.

async function loop(consumer: Consumer): Promise<void> {
  const queue = setting("CONSUMER_QUEUE");
  const connection = await connect(setting("RABBITMQ_URL"));
  connection.on("error", (error) => console.error(`RabbitMQ: ${error.message}`));
  const lost = event(connection, "close").then(() => {
    throw new Error("The connection to RabbitMQ was lost. What was not acknowledged comes again.");
  });
  const channel = await connection.createChannel();
  await declare(channel, queue);
  await channel.prefetch(8);
  const running = new Set<Promise<void>>();
  const { consumerTag } = await channel.consume(queue, (message) => {
    if (message === null) return;
    const handling = handle(consumer, channel, queue, message).finally(() => running.delete(handling));
    running.add(handling);
  });
  tell({ ready: queue });
  await Promise.race([aborted(consumer.stopping), lost]);
  await channel.cancel(consumerTag);
  await Promise.all(running);
  lost.catch(() => {});
  await connection.close();
}

async function declare(channel: Channel, queue: string): Promise<void> {
  const dead = `${queue}.dead`;
  await channel.assertQueue(dead, { durable: true });
  await channel.assertQueue(queue, {
    durable: true,
    arguments: {
      "x-queue-type": "quorum",
      "x-delivery-limit": 5,
      "x-dead-letter-exchange": "",
      "x-dead-letter-routing-key": dead,
    },
  });
}

/** Never rejects: an answer that cannot be sent any more means a lost channel, and a redelivery. */
async function handle(consumer: Consumer, channel: Channel, queue: string, message: ConsumeMessage): Promise<void> {
  try {
    const { headers = {} } = message.properties;
    const delivery = deliveryOf(queue, (name) => headers[name]);
    const verdict = await takeIn(consumer, { delivery, payload: message.content.toString() });
    if (verdict === "acknowledge") channel.ack(message);
    else channel.nack(message);
  } catch (error) {
    report(error);
    giveBack(channel, message);
  }
}

function giveBack(channel: Channel, message: ConsumeMessage): void {
  try {
    channel.nack(message);
  } catch (error) {
    report(error);
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await event(signal, "abort");
}

main(loop);
