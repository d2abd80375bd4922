import { createHash, randomUUID } from "node:crypto";
import { SQS } from "@aws-sdk/client-sqs";
import { jetstream } from "@nats-io/jetstream";
import { connect as connectNats, headers } from "@nats-io/transport-node";
import { type Channel, connect } from "amqplib";
import { startFauxqs } from "fauxqs";
import { Redis } from "ioredis";
import { Kafka, logLevel } from "kafkajs";
import type { OutboxMessage, Publisher } from "oncekey/outbox";
import { kafkaPublisher } from "oncekey/publishers/kafka";
import { natsPublisher } from "oncekey/publishers/nats";
import { type RabbitmqOptions, rabbitmqPublisher } from "oncekey/publishers/rabbitmq";
import { redisPublisher } from "oncekey/publishers/redis";
import { sqsPublisher } from "oncekey/publishers/sqs";
import { beforeAll, describe, expect, it } from "vitest";
import { brokerPort, startBrokers, withBroker } from "../support/brokers/index.ts";
import { startKafkaEndpoint } from "../support/brokers/kafka-endpoint.ts";
import { stallingProxy } from "../support/brokers/stalling-proxy.ts";
import { atEnd } from "../support/postgres.ts";

// What is particular to one broker; what all publishers promise is in test/conformance/publishers.test.ts.

beforeAll(startBrokers);

function makeMessage(given: Partial<OutboxMessage> = {}): OutboxMessage {
  return {
    id: createHash("sha256").update(randomUUID()).digest("base64url"),
    topic: `topic-${randomUUID()}`,
    payload: '{"n":1}',
    key: null,
    orderBy: null,
    tenant: "acme",
    client: null,
    context: null,
    correlation: null,
    createdAt: new Date("2026-01-02T03:04:05.678Z"),
    attempt: 1,
    ...given,
  };
}

const publish = (publisher: Publisher, message: OutboxMessage) =>
  publisher.publish(message, AbortSignal.timeout(20_000));

const DELIVERED = { kind: "delivered" };

withBroker("rabbitmq", () =>
  describe("RabbitMQ", () => {
    let url = "";
    let channel: Channel;

    beforeAll(async () => {
      url = `amqp://guest:guest@127.0.0.1:${await brokerPort("rabbitmq")}`;
      const connection = await connect(url);
      atEnd(() => connection.close());
      channel = await connection.createChannel();
    });

    function publisherOf(options: Partial<RabbitmqOptions>): Publisher {
      const publisher = rabbitmqPublisher({ connect: () => connect(url), exchange: "", ...options });
      atEnd(async () => publisher.close?.());
      return publisher;
    }

    it("sends persistent JSON under the message's id, with the time it was sent at", async () => {
      const message = makeMessage();
      await channel.assertQueue(message.topic, { exclusive: true });
      expect(await publish(publisherOf({}), message)).toEqual(DELIVERED);
      const got = await channel.get(message.topic, { noAck: true });
      expect(got).toMatchObject({
        properties: {
          messageId: message.id,
          deliveryMode: 2,
          contentType: "application/json",
          timestamp: 1_767_323_045,
          headers: { "oncekey-id": message.id, "oncekey-tenant": "acme" },
        },
      });
    });

    it("does not take a message for delivered that no queue took", async () => {
      const message = makeMessage();
      const why = "No queue is bound for the message: RabbitMQ returned it.";
      expect(await publish(publisherOf({}), message)).toEqual({ kind: "retry", why });
      expect(await publish(publisherOf({ unroutable: "dead" }), message)).toEqual({ kind: "dead", why });
    });

    it("does not take either of two attempts for delivered that came back together, after a time-out of the first", async () => {
      const proxy = await stallingProxy(await brokerPort("rabbitmq"));
      atEnd(proxy.close);
      const publisher = publisherOf({ connect: () => connect(`amqp://guest:guest@127.0.0.1:${proxy.port}`) });
      expect(await publish(publisher, makeMessage())).toMatchObject({ kind: "retry" });
      const message = makeMessage();
      const stop = new AbortController();
      proxy.stall();
      const first = publisher.publish(message, stop.signal);
      await expect.poll(proxy.writes).toBe(1);
      stop.abort();
      expect(await first).toMatchObject({ kind: "retry" });
      const second = publish(publisher, message);
      await expect.poll(proxy.writes).toBe(2);
      proxy.flow();
      expect(await second).toMatchObject({ kind: "retry" });
    });

    it("asks for another attempt while its exchange is missing, and delivers once it is there", async () => {
      const message = makeMessage();
      const exchange = `exchange-${message.topic}`;
      const publisher = publisherOf({ exchange, routingKey: ({ tenant }) => tenant });
      expect(await publish(publisher, message)).toMatchObject({ kind: "retry" });
      await channel.assertQueue(message.topic, { exclusive: true });
      await channel.assertExchange(exchange, "direct", { autoDelete: true, durable: false });
      await channel.bindQueue(message.topic, exchange, "acme");
      expect(await publish(publisher, message)).toEqual(DELIVERED);
    });

    it("asks for another attempt where the broker refuses (nack), on the same channel", async () => {
      const queue = makeMessage().topic;
      await channel.assertQueue(queue, {
        exclusive: true,
        arguments: { "x-max-length": 1, "x-overflow": "reject-publish" },
      });
      const publisher = publisherOf({ routingKey: queue });
      expect(await publish(publisher, makeMessage())).toEqual(DELIVERED);
      expect(await publish(publisher, makeMessage())).toMatchObject({ kind: "retry" });
      await channel.purgeQueue(queue);
      expect(await publish(publisher, makeMessage())).toEqual(DELIVERED);
    });
  }),
);

withBroker("nats", () =>
  it("NATS: says that no stream takes the subject", async () => {
    const connection = await connectNats({ servers: `127.0.0.1:${await brokerPort("nats")}` });
    atEnd(() => connection.close());
    const publisher = natsPublisher({ jetstream: jetstream(connection), headers });
    const why = "No stream of NATS takes the message's subject.";
    expect(await publish(publisher, makeMessage())).toEqual({ kind: "retry", why });
  }),
);

withBroker("redis", () =>
  describe("Redis", () => {
    let client: Redis;

    beforeAll(async () => {
      client = new Redis(await brokerPort("redis"), "127.0.0.1");
      atEnd(async () => client.disconnect());
    });

    it("trims its stream where a length is given", async () => {
      const stream = `trimmed-${randomUUID()}`;
      const publisher = redisPublisher({ client, stream, maxLength: 1 });
      // Redis trims whole nodes of 100 entries.
      for (let sent = 0; sent < 250; sent += 1) expect(await publish(publisher, makeMessage())).toEqual(DELIVERED);
      expect(await client.xlen(stream)).toBeLessThan(150);
      await client.del(stream);
    });

    it("names the kind of a refusal, and none of its text", async () => {
      const message = makeMessage();
      await client.set(message.topic, "no stream");
      const why = "Redis refused it: WRONGTYPE.";
      expect(await publish(redisPublisher({ client }), message)).toEqual({ kind: "retry", why });
      await client.del(message.topic);
    });

    it("works over any client that can send a command", async () => {
      const message = makeMessage();
      const other = { sendCommand: ([name = "", ...parts]: string[]) => client.call(name, ...parts) };
      const publisher = redisPublisher({ client: { call: (...parts) => other.sendCommand(parts) } });
      expect(await publish(publisher, message)).toEqual(DELIVERED);
      expect(await client.xlen(message.topic)).toBe(1);
      await client.del(message.topic);
    });
  }),
);

it("SQS: groups messages of a FIFO queue by tenant and order, and by nothing else", async () => {
  const server = await startFauxqs({ port: 0, host: "127.0.0.1", logger: false });
  const { queueUrl } = server.createQueue("groups.fifo", { attributes: { FifoQueue: "true" } });
  const client = new SQS({
    endpoint: `http://127.0.0.1:${server.port}`,
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  atEnd(async () => {
    client.destroy();
    await server.stop();
  });
  const publisher = sqsPublisher({ client, queueUrl });
  const long = { tenant: "t".repeat(255), orderBy: "o".repeat(255) };
  const ways = [
    { tenant: "a/b", orderBy: "c" },
    { tenant: "a", orderBy: "b/c" },
    { tenant: "a", orderBy: null },
    { tenant: "a", orderBy: null },
    long,
    { ...long, orderBy: "p".repeat(255) },
  ];
  for (const way of ways) expect(await publish(publisher, makeMessage(way))).toEqual(DELIVERED);
  expect(await publish(publisher, makeMessage(long))).toEqual(DELIVERED);
  const groups = server.inspectQueue("groups.fifo")?.messages.ready.map(({ messageGroupId }) => messageGroupId) ?? [];
  expect(groups).toHaveLength(ways.length + 1);
  expect(new Set(groups).size).toBe(ways.length);
  for (const group of groups) expect(group).toMatch(/^[\x21-\x7e]{1,128}$/);
});

describe("Kafka", () => {
  async function producing(topic: string) {
    const endpoint = await startKafkaEndpoint({ partitions: 3 });
    const kafka = new Kafka({ brokers: [`127.0.0.1:${endpoint.port}`], logLevel: logLevel.NOTHING });
    const producer = kafka.producer({ idempotent: true, retry: { retries: 5, initialRetryTime: 20 } });
    const publisher = kafkaPublisher({ producer, topic });
    atEnd(async () => {
      await publisher.close?.();
      await endpoint.close();
    });
    return { endpoint, producer, publisher };
  }

  it("numbers batches per partition under one producer id, asks all replicas, and keys by order, else by key", async () => {
    const { endpoint, publisher } = await producing("orders");
    const messages = [
      makeMessage({ orderBy: "o-1", key: "k-1" }),
      makeMessage({ orderBy: "o-1", key: "k-2" }),
      makeMessage({ key: "k-3" }),
      makeMessage(),
      makeMessage({ orderBy: "o-1" }),
    ];
    for (const message of messages) expect(await publish(publisher, message)).toEqual(DELIVERED);
    expect(new Set(endpoint.acks)).toEqual(new Set([-1]));
    const batches = endpoint.batches();
    expect(batches.map(({ records }) => records[0]?.key)).toEqual(["o-1", "o-1", "k-3", null, "o-1"]);
    expect(batches.map(({ records }) => records[0]?.headers["oncekey-id"])).toEqual(messages.map(({ id }) => id));
    expect(new Set(batches.map(({ producerId, producerEpoch }) => `${producerId} ${producerEpoch}`))).toEqual(
      new Set(["1 0"]),
    );
    const ordered = batches.filter(({ records }) => records[0]?.key === "o-1");
    expect(new Set(ordered.map(({ partition }) => partition)).size).toBe(1);
    for (const { partition, baseSequence } of batches) {
      const before = batches.filter((one) => one.partition === partition && one.baseSequence < baseSequence);
      expect(baseSequence).toBe(before.length);
    }
  });

  it("sends a message again under the same sequence when the answer was lost, and the broker keeps one", async () => {
    const { endpoint, publisher } = await producing("lossy");
    expect(await publish(publisher, makeMessage({ orderBy: "o" }))).toEqual(DELIVERED);
    endpoint.loseNextProduceAnswer();
    const message = makeMessage({ orderBy: "o" });
    expect(await publish(publisher, message)).toEqual(DELIVERED);
    expect(endpoint.acks).toHaveLength(3);
    const kept = endpoint.records("lossy").filter(({ headers }) => headers["oncekey-id"] === message.id);
    expect(kept).toHaveLength(1);
    expect(await publish(publisher, makeMessage({ orderBy: "o" }))).toEqual(DELIVERED);
  });

  it("disconnects its producer when closed, also after a send that failed", async () => {
    const { producer, publisher } = await producing("closed");
    expect(await publish(publisher, makeMessage({ payload: JSON.stringify("x".repeat(2_000_000)) }))).toMatchObject({
      kind: "dead",
    });
    let ended = 0;
    producer.on(producer.events.DISCONNECT, () => ended++);
    await publisher.close?.();
    expect(ended).toBe(1);
  });
});
