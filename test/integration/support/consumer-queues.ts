import { randomUUID } from "node:crypto";
import { SQS } from "@aws-sdk/client-sqs";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect as connectNats, headers } from "@nats-io/transport-node";
import { connect } from "amqplib";
import { startFauxqs } from "fauxqs";
import { Redis } from "ioredis";
import { Kafka, logLevel } from "kafkajs";
import type { Publisher } from "oncekey/outbox";
import { kafkaPublisher } from "oncekey/publishers/kafka";
import { natsPublisher } from "oncekey/publishers/nats";
import { rabbitmqPublisher } from "oncekey/publishers/rabbitmq";
import { redisPublisher } from "oncekey/publishers/redis";
import { sqsPublisher } from "oncekey/publishers/sqs";
import { brokerPort } from "../../support/brokers/index.ts";
import { type KafkaEndpoint, startKafkaEndpoint } from "../../support/brokers/kafka-endpoint.ts";
import { atEnd } from "../../support/postgres.ts";

/** A message that a consumer of SQS has received and not deleted. */
export interface HiddenMessage {
  readonly message: { readonly approximateReceiveCount: number };
  /** Milliseconds since the epoch. */
  readonly visibilityDeadline: number;
}

/** A queue of a test's own: what fills it, what a consumer must be told, and what it still holds. */
export interface Queue {
  readonly publisher: Publisher;
  readonly settings: Readonly<Record<string, string>>;
  /** Messages that no consumer has acknowledged. */
  left(): Promise<number>;
}

const nameOf = () => `consumers-${randomUUID()}`;

export async function rabbitmqQueue(): Promise<Queue> {
  const queue = nameOf();
  const url = `amqp://guest:guest@127.0.0.1:${await brokerPort("rabbitmq")}`;
  const publisher = rabbitmqPublisher({ connect: () => connect(url), exchange: "", routingKey: queue });
  const connection = await connect(url);
  const channel = await connection.createChannel();
  atEnd(async () => {
    await publisher.close?.();
    await connection.close();
  });
  return {
    publisher,
    settings: { CONSUMER_QUEUE: queue, RABBITMQ_URL: url },
    // A quorum queue counts what is ready only; with no consumer left, everything is.
    left: async () => (await channel.checkQueue(queue)).messageCount,
  };
}

/** How long NATS waits for an acknowledgement, in milliseconds. */
export const NATS_ACK_WAIT_MS = 2_000;

export async function natsQueue(): Promise<Queue & { readonly manager: JetStreamManager; readonly stream: string }> {
  const stream = nameOf();
  const servers = `127.0.0.1:${await brokerPort("nats")}`;
  const connection = await connectNats({ servers });
  const manager: JetStreamManager = await jetstreamManager(connection);
  await manager.streams.add({ name: stream, subjects: [stream] });
  atEnd(() => connection.close());
  return {
    publisher: natsPublisher({ jetstream: jetstream(connection), headers, subject: stream }),
    settings: { CONSUMER_QUEUE: stream, NATS_URL: servers, CONSUMER_ACK_WAIT_MS: String(NATS_ACK_WAIT_MS) },
    async left() {
      const { num_pending, num_ack_pending } = await manager.consumers.info(stream, "bookings");
      return num_pending + num_ack_pending;
    },
    manager,
    stream,
  };
}

export async function redisQueue(): Promise<Queue> {
  const stream = nameOf();
  const port = await brokerPort("redis");
  const client = new Redis(port, "127.0.0.1");
  atEnd(async () => client.disconnect());
  return {
    publisher: redisPublisher({ client, stream }),
    settings: { CONSUMER_QUEUE: stream, REDIS_URL: `redis://127.0.0.1:${port}`, CONSUMER_IDLE_MS: "300" },
    left: async () => Number((await client.xpending(stream, "bookings"))[0]),
  };
}

export async function sqsQueue(): Promise<
  Queue & { hidden(): readonly HiddenMessage[]; receive(): Promise<readonly unknown[]> }
> {
  const server = await startFauxqs({ port: 0, host: "127.0.0.1", logger: false });
  const name = `${nameOf()}.fifo`;
  const { queueUrl } = server.createQueue(name, { attributes: { FifoQueue: "true" } });
  const endpoint = `http://127.0.0.1:${server.port}`;
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const client = new SQS({ endpoint, region: "us-east-1", credentials });
  atEnd(async () => {
    client.destroy();
    await server.stop();
  });
  return {
    publisher: sqsPublisher({ client, queueUrl }),
    settings: {
      CONSUMER_QUEUE: queueUrl,
      SQS_ENDPOINT: endpoint,
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
      CONSUMER_VISIBILITY_S: "2",
    },
    async left() {
      const held = server.inspectQueue(name)?.messages;
      return (held?.ready.length ?? 0) + (held?.inflight.length ?? 0);
    },
    hidden: () => server.inspectQueue(name)?.messages.inflight ?? [],
    receive: async () => (await client.receiveMessage({ QueueUrl: queueUrl })).Messages ?? [],
  };
}

export async function kafkaQueue(): Promise<Queue & { readonly endpoint: KafkaEndpoint; readonly topic: string }> {
  const topic = nameOf();
  // One partition: what is behind the crash, and what before it, is then a matter of one offset.
  const endpoint = await startKafkaEndpoint({ partitions: 1 });
  const broker = `127.0.0.1:${endpoint.port}`;
  const kafka = new Kafka({ clientId: "test", brokers: [broker], logLevel: logLevel.NOTHING });
  const producer = kafka.producer({ idempotent: true, retry: { retries: 5 } });
  const publisher = kafkaPublisher({ producer, topic });
  atEnd(async () => {
    await publisher.close?.();
    await endpoint.close();
  });
  return {
    publisher,
    settings: { CONSUMER_QUEUE: topic, KAFKA_BROKERS: broker },
    left: async () =>
      endpoint.records(topic).length - Number(endpoint.committed().get(`bookings.${topic} ${topic} 0`) ?? 0),
    endpoint,
    topic,
  };
}
