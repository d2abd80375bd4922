import { randomUUID } from "node:crypto";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";
import { natsPublisher } from "oncekey/publishers/nats";
import type { ArrivedMessage, PublisherHarness } from "oncekey/testing";
import { brokerPort } from "../../support/brokers/index.ts";
import { arrivedFrom, behindProxy } from "./outage.ts";

/** A stream of its own on the run's NATS. */
export async function natsHarness(): Promise<PublisherHarness> {
  const port = await brokerPort("nats");
  const { proxy, outage } = await behindProxy(port);
  const name = `suite-${randomUUID()}`;
  const observer = await connect({ servers: `127.0.0.1:${port}` });
  const manager = await jetstreamManager(observer);
  await manager.streams.add({ name, subjects: [name] });
  const arrived = await collect(observer, name);
  const connection = await connect({
    servers: `127.0.0.1:${proxy.port}`,
    user: "app",
    pass: "hush-hush",
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
  });
  const publisher = natsPublisher({ jetstream: jetstream(connection), headers, subject: name });
  return {
    publisher,
    ...outage,
    arrived: async () => arrived,
    tooLarge: 1_100_000,
    secrets: ["hush-hush"],
    async close() {
      await connection.close();
      await manager.streams.delete(name);
      await observer.close();
      await proxy.close();
    },
  };
}

async function collect(observer: NatsConnection, stream: string): Promise<ArrivedMessage[]> {
  const arrived: ArrivedMessage[] = [];
  const consumer = await jetstream(observer).consumers.get(stream);
  const messages = await consumer.consume();
  void (async () => {
    for await (const message of messages) {
      const header = (name: string) => (message.headers?.has(name) ? message.headers.get(name) : undefined);
      arrived.push(arrivedFrom(header, message.string()));
    }
  })();
  return arrived;
}
