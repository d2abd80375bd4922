import { jetstream } from "@nats-io/jetstream";
import { connect as connectNats } from "@nats-io/transport-node";
import { connect as connectRabbitmq } from "amqplib";
import type { OutboxMessage } from "oncekey/outbox";
import pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { brokerPort, startBrokers, withBroker } from "../support/brokers/index.ts";
import { type OutageProxy, outageProxy } from "../support/brokers/outage-proxy.ts";
import { atEnd, createDatabase, sharedServer } from "../support/postgres.ts";
import { bookings, isReady, makeMessages, publishAll, resultsOf } from "./support/consumer-messages.ts";
import { type ConsumerName, type ConsumerProcess, makePrograms, startConsumer } from "./support/consumer-programs.ts";
import { NATS_ACK_WAIT_MS, natsQueue, type Queue, rabbitmqQueue, sqsQueue } from "./support/consumer-queues.ts";

// The loops of examples/consumers while a message takes long: its effect is slow, or its database is away.

beforeAll(async () => {
  await Promise.all([startBrokers(), makePrograms()]);
});

interface Working<Q> {
  readonly queue: Q;
  readonly consumer: ConsumerProcess;
  readonly message: OutboxMessage;
  readonly url: string;
}

async function consuming<Q extends Queue>(name: ConsumerName, queue: Q, reachedBy?: (url: string) => string) {
  const { url } = await createDatabase();
  const consumer = await startConsumer(name, { ...queue.settings, DATABASE_URL: reachedBy?.(url) ?? url });
  await consumer.said(isReady);
  const [message] = makeMessages();
  if (message === undefined) throw new Error("No message was made.");
  return { queue, consumer, message, url } satisfies Working<Q>;
}

/** Keeps the effect of a message waiting for its table until it is let go. */
async function slowEffects(url: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  await client.query("BEGIN; LOCK TABLE booking IN ACCESS EXCLUSIVE MODE");
  return () => client.end();
}

async function expectOneEffect({ queue, consumer, message, url }: Working<Queue>): Promise<void> {
  await consumer.said(() => resultsOf(consumer, message).at(-1) === "done");
  expect(await consumer.stop()).toBe(0);
  expect(await queue.left()).toBe(0);
  const { tenant, id, payload } = message;
  expect(await bookings(url)).toEqual([{ tenant, delivery: id, payload }]);
}

describe("a message whose effect takes longer than its broker waits stays with its consumer:", () => {
  it("sqs: its visibility is extended", async () => {
    const working = await consuming("sqs", await sqsQueue());
    const { queue, consumer, message, url } = working;
    const letGo = await slowEffects(url);
    await publishAll(queue, [message]);
    await expect.poll(queue.hidden).toHaveLength(1);
    const firstDeadline = queue.hidden()[0]?.visibilityDeadline ?? 0;
    await expect.poll(() => Date.now(), { timeout: 10_000 }).toBeGreaterThan(firstDeadline);
    expect(await queue.receive()).toEqual([]);
    expect(queue.hidden()).toMatchObject([{ message: { approximateReceiveCount: 1 } }]);
    await letGo();
    await expectOneEffect(working);
    expect(resultsOf(consumer, message)).toEqual(["done"]);
  });

  withBroker("nats", () =>
    it("nats: working() keeps it", async () => {
      const working = await consuming("nats", await natsQueue());
      const { queue, consumer, message, url } = working;
      const letGo = await slowEffects(url);
      await publishAll(queue, [message]);
      const counts = async () => queue.manager.consumers.info(queue.stream, "bookings");
      await expect.poll(async () => (await counts()).num_ack_pending).toBe(1);
      expect(await redeliveryToAnother(queue.stream)).toBeNull();
      expect(await counts()).toMatchObject({ num_ack_pending: 1, num_redelivered: 0 });
      await letGo();
      await expectOneEffect(working);
      expect(resultsOf(consumer, message)).toEqual(["done"]);
    }),
  );
});

/** What the group's next member would get, if the server took the message for left. */
async function redeliveryToAnother(stream: string) {
  const connection = await connectNats({ servers: `127.0.0.1:${await brokerPort("nats")}` });
  const another = await jetstream(connection).consumers.get(stream, "bookings");
  const redelivered = await another.next({ expires: NATS_ACK_WAIT_MS * 2 });
  await connection.close();
  return redelivered;
}

withBroker("nats", () =>
  it("nats: a message that always fails is stored elsewhere, and what is behind it goes on", async () => {
    const working = await consuming("nats", await natsQueue());
    const { queue } = working;
    const connection = await connectNats({ servers: queue.settings.NATS_URL ?? "" });
    await jetstream(connection).publish(queue.stream, "not one of ours");
    await connection.close();
    await publishAll(queue, [working.message]);
    const dead = async () => queue.manager.streams.getMessage(`${queue.stream}-dead`, { seq: 1 });
    await expect.poll(async () => (await dead())?.string(), { timeout: 20_000 }).toBe("not one of ours");
    await expectOneEffect(working);
  }),
);

describe("an outage of the database that is longer than a broker's patience with failures makes no dead letters:", () => {
  /** More than any of the brokers or loops allows. */
  const TRIES = 7;

  async function outlives(name: ConsumerName, queue: Queue, meanwhile = () => {}): Promise<void> {
    const { port } = await sharedServer();
    const proxy: OutageProxy = await outageProxy(port);
    const working = await consuming(name, queue, (url) => url.replace(`:${port}/`, `:${proxy.port}/`));
    atEnd(() => proxy.close());
    const { consumer, message } = working;
    proxy.away();
    await publishAll(queue, [message]);
    await consumer.said(() => resultsOf(consumer, message).length >= TRIES);
    expect(new Set(resultsOf(consumer, message))).toEqual(new Set(["unsettled"]));
    meanwhile();
    proxy.back();
    await expectOneEffect(working);
  }

  withBroker("rabbitmq", () =>
    it.concurrent("rabbitmq", async () => {
      const queue = await rabbitmqQueue();
      await outlives("rabbitmq", queue);
      const connection = await connectRabbitmq(queue.settings.RABBITMQ_URL ?? "");
      const channel = await connection.createChannel();
      expect(await channel.checkQueue(`${queue.settings.CONSUMER_QUEUE}.dead`)).toMatchObject({ messageCount: 0 });
      await connection.close();
    }),
  );

  withBroker("nats", () =>
    it.concurrent("nats", async () => {
      const queue = await natsQueue();
      await outlives("nats", queue);
      expect((await queue.manager.streams.info(`${queue.stream}-dead`)).state.messages).toBe(0);
    }),
  );

  it.concurrent("sqs", async () => {
    const queue = await sqsQueue();
    const received = [{ message: { approximateReceiveCount: 1 } }];
    await outlives("sqs", queue, () => expect(queue.hidden()).toMatchObject(received));
  });
});
