import { randomUUID } from "node:crypto";
import { Kafka, logLevel } from "kafkajs";
import { kafkaPublisher } from "oncekey/publishers/kafka";
import type { PublisherHarness } from "oncekey/testing";
import { startKafkaEndpoint } from "../../support/brokers/kafka-endpoint.ts";
import { arrivedFrom, behindProxy } from "./outage.ts";

/** kafkajs against an endpoint of its own: there is no Kafka to install here. */
export async function kafkaHarness(): Promise<PublisherHarness> {
  let proxied = 0;
  const endpoint = await startKafkaEndpoint({ advertised: () => proxied });
  const { proxy, outage } = await behindProxy(endpoint.port);
  proxied = proxy.port;
  const topic = `suite-${randomUUID()}`;
  const retry = { retries: 3, initialRetryTime: 20, maxRetryTime: 50 };
  const kafka = new Kafka({
    clientId: "suite",
    brokers: [`127.0.0.1:${proxy.port}`],
    connectionTimeout: 500,
    requestTimeout: 500,
    logLevel: logLevel.NOTHING,
    retry,
  });
  const publisher = kafkaPublisher({ producer: kafka.producer({ idempotent: true, retry }), topic });
  return {
    publisher,
    ...outage,
    arrived: async () =>
      endpoint.records(topic).map(({ headers, value }) => arrivedFrom((name) => headers[name], value)),
    tooLarge: 70_000,
    secrets: [],
    async close() {
      await publisher.close?.();
      await proxy.close();
      await endpoint.close();
    },
  };
}
