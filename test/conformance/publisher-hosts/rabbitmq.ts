import { randomUUID } from "node:crypto";
import { connect } from "amqplib";
import { rabbitmqPublisher } from "oncekey/publishers/rabbitmq";
import type { ArrivedMessage, PublisherHarness } from "oncekey/testing";
import { brokerPort } from "../../support/brokers/index.ts";
import { arrivedFrom, behindProxy } from "./outage.ts";

/** A queue of its own on the run's RabbitMQ. */
export async function rabbitmqHarness(): Promise<PublisherHarness> {
  const port = await brokerPort("rabbitmq");
  const { proxy, outage } = await behindProxy(port);
  const queue = `suite-${randomUUID()}`;
  const connection = await connect(`amqp://guest:guest@127.0.0.1:${port}`);
  const channel = await connection.createChannel();
  await channel.assertQueue(queue, { exclusive: true });
  const arrived: ArrivedMessage[] = [];
  await channel.consume(
    queue,
    (message) => {
      if (message === null) return;
      const { headers = {}, messageId } = message.properties;
      const one = arrivedFrom((name) => headers[name], message.content.toString());
      arrived.push({ ...one, id: messageId });
    },
    { noAck: true },
  );
  const publisher = rabbitmqPublisher({
    connect: () => connect(`amqp://guest:guest@127.0.0.1:${proxy.port}`),
    exchange: "",
    routingKey: queue,
  });
  return {
    publisher,
    ...outage,
    arrived: async () => arrived,
    tooLarge: 70_000,
    secrets: ["guest"],
    async close() {
      await publisher.close?.();
      await connection.close();
      await proxy.close();
    },
  };
}
