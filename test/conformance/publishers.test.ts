import { publisherSuite } from "oncekey/testing";
import { beforeAll, describe, it } from "vitest";
import { startBrokers, withBroker } from "../support/brokers/index.ts";
import { functionHarness, webhookHarness } from "./publisher-hosts/http.ts";
import { kafkaHarness } from "./publisher-hosts/kafka.ts";
import { natsHarness } from "./publisher-hosts/nats.ts";
import { rabbitmqHarness } from "./publisher-hosts/rabbitmq.ts";
import { redisHarness } from "./publisher-hosts/redis.ts";
import { sqsHarness } from "./publisher-hosts/sqs.ts";

beforeAll(startBrokers);

const DROPPED = "lets the other side drop a redelivery";
const BEYOND_BMP = "delivers characters beyond the basic plane as they are";
const FAUXQS = "the emulator refuses them; SQS itself takes #x10000 to #x10FFFF";

withBroker("rabbitmq", () =>
  publisherSuite({ describe, it }, "rabbitmq", rabbitmqHarness, {
    limits: { [DROPPED]: "RabbitMQ keeps every copy: consumers dedupe by messageId" },
  }),
);
withBroker("nats", () => publisherSuite({ describe, it }, "nats", natsHarness));
withBroker("redis", () =>
  publisherSuite({ describe, it }, "redis", redisHarness, {
    limits: { [DROPPED]: "Redis Streams keep every copy: consumers dedupe by the field oncekey-id" },
  }),
);
publisherSuite({ describe, it }, "sqs, a FIFO queue", () => sqsHarness("fifo"), { limits: { [BEYOND_BMP]: FAUXQS } });
publisherSuite({ describe, it }, "sqs, a standard queue", () => sqsHarness("standard"), {
  limits: {
    [DROPPED]: "a standard queue keeps every copy: consumers dedupe by the attribute oncekey-id",
    [BEYOND_BMP]: FAUXQS,
    "keeps the order in which it was given messages of one order": "a standard queue has no order",
  },
});

publisherSuite({ describe, it }, "kafka", kafkaHarness, {
  limits: { [DROPPED]: "Kafka drops a producer's own retries only: consumers dedupe by the header oncekey-id" },
});

publisherSuite({ describe, it }, "webhook", webhookHarness, {
  limits: { [DROPPED]: "an endpoint sees every copy: it dedupes by webhook-id" },
});
publisherSuite({ describe, it }, "a function of one's own", functionHarness, {
  limits: { [DROPPED]: "its other side sees every copy" },
});
