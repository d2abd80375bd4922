import type { OutboxMessage } from "oncekey/outbox";
import { beforeAll, expect, it } from "vitest";
import { startBrokers } from "../support/brokers/index.ts";
import { type BrokerName, missingBroker } from "../support/brokers/servers.ts";
import { createDatabase, query } from "../support/postgres.ts";
import { bookings, isReady, makeMessages, publishAll, resultsOf } from "./support/consumer-messages.ts";
import { type ConsumerName, makePrograms, startConsumer } from "./support/consumer-programs.ts";
import { kafkaQueue, natsQueue, type Queue, rabbitmqQueue, redisQueue, sqsQueue } from "./support/consumer-queues.ts";

beforeAll(async () => {
  await Promise.all([startBrokers(), makePrograms()]);
});

interface Crashed {
  readonly url: string;
  readonly messages: readonly OutboxMessage[];
  /** Deliveries whose effect was committed when the process was killed. */
  readonly committed: ReadonlySet<unknown>;
  readonly settings: Readonly<Record<string, string>>;
}

/** A consumer that is killed with SIGKILL between the commit and the acknowledgement of its first message. */
async function crashBeforeAcknowledging(name: ConsumerName, queue: Queue): Promise<Crashed> {
  const { url } = await createDatabase();
  const settings = { ...queue.settings, DATABASE_URL: url };
  const messages = makeMessages();
  const doomed = await startConsumer(name, { ...settings, CONSUMER_LAB: "crash" });
  await doomed.said(isReady);
  await publishAll(queue, messages);
  expect(await doomed.ended).toBe("SIGKILL");
  const committed = new Set((await bookings(url)).map(({ delivery }) => delivery));
  expect(committed.size).toBeGreaterThan(0);
  return { url, messages, committed, settings };
}

async function expectAllBookedOnce({ url, messages }: Crashed): Promise<void> {
  const expected = messages.map(({ tenant, id, payload }) => ({ tenant, delivery: id, payload }));
  expect(await bookings(url)).toEqual(expected);
}

async function acknowledgesWithoutASecondEffect(name: ConsumerName, queue: Queue): Promise<void> {
  const crashed = await crashBeforeAcknowledging(name, queue);
  const next = await startConsumer(name, crashed.settings);
  await next.said(() => crashed.messages.every((message) => resultsOf(next, message).length > 0));
  for (const message of crashed.messages) {
    const expected = crashed.committed.has(message.id) ? "duplicate" : "done";
    expect(resultsOf(next, message)[0], message.tenant).toBe(expected);
  }
  expect(await next.stop()).toBe(0);
  expect(await queue.left()).toBe(0);
  await expectAllBookedOnce(crashed);
}

const queues: readonly { name: ConsumerName; make: () => Promise<Queue>; server?: BrokerName }[] = [
  { name: "rabbitmq", make: rabbitmqQueue, server: "rabbitmq" },
  { name: "nats", make: natsQueue, server: "nats" },
  { name: "redis", make: redisQueue, server: "redis" },
  { name: "sqs", make: sqsQueue },
];

for (const { name, make, server } of queues) {
  it(`${name}: a redelivery after a kill between commit and acknowledgement is acknowledged without a second effect`, async (context) => {
    const missing = server === undefined ? null : missingBroker(server);
    if (missing !== null && process.env.CI === "true") throw new Error(`${missing}. CI must not skip this.`);
    if (missing !== null) context.skip(missing);
    await acknowledgesWithoutASecondEffect(name, await make());
  });
}

it("kafka: after a kill between commit and acknowledgement the loop goes on at the offset that it stored with the effect", async () => {
  const queue = await kafkaQueue();
  const crashed = await crashBeforeAcknowledging("kafka", queue);
  expect(queue.endpoint.committed().size).toBe(0);
  const [stored] = await query(crashed.url, "SELECT next_offset::int AS next FROM kafka_position");
  expect(stored?.next).toBe(crashed.committed.size);

  const fetchedBefore = queue.endpoint.fetchedFrom(queue.topic).length;
  const next = await startConsumer("kafka", crashed.settings);
  await next.said(isReady);
  // The same message again, at another offset, as a relay sends it that never learned of its delivery.
  const [again] = crashed.messages;
  if (again === undefined) throw new Error("No message was sent.");
  await publishAll(queue, [{ ...again, attempt: 2 }]);
  await next.said(() => resultsOf(next, again).length > 0);
  expect(resultsOf(next, again)).toEqual(["duplicate"]);
  await expect.poll(() => queue.left(), { timeout: 20_000 }).toBe(0);
  expect(await next.stop()).toBe(0);

  for (const message of crashed.messages.slice(crashed.committed.size))
    expect(resultsOf(next, message)).toEqual(["done"]);
  // From offset 0 it would have gone on behind all that were there.
  expect(queue.endpoint.fetchedFrom(queue.topic).slice(fetchedBefore)).toContain(crashed.committed.size);
  await expectAllBookedOnce(crashed);
});
