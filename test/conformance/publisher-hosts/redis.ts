import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { redisPublisher } from "oncekey/publishers/redis";
import type { PublisherHarness } from "oncekey/testing";
import { brokerPort } from "../../support/brokers/index.ts";
import { arrivedFrom, behindProxy } from "./outage.ts";

/** A stream of its own on the run's Redis. */
export async function redisHarness(): Promise<PublisherHarness> {
  const port = await brokerPort("redis");
  const { proxy, outage } = await behindProxy(port);
  const stream = `suite-${randomUUID()}`;
  const observer = new Redis(port, "127.0.0.1");
  const client = new Redis(proxy.port, "127.0.0.1", { enableOfflineQueue: false, retryStrategy: () => 50 });
  client.on("error", () => {});
  await new Promise((resolve) => client.once("ready", resolve));
  return {
    publisher: redisPublisher({ client, stream }),
    ...outage,
    async arrived() {
      const entries = await observer.xrange(stream, "-", "+");
      return entries.map(([, fields]) => {
        const field = (name: string) => {
          const at = fields.indexOf(name);
          return at === -1 ? undefined : fields[at + 1];
        };
        return arrivedFrom(field, field("payload") ?? "");
      });
    },
    tooLarge: 1_100_000,
    secrets: [],
    async close() {
      client.disconnect();
      await observer.del(stream);
      observer.disconnect();
      await proxy.close();
    },
  };
}
