import { createServer } from "node:http";
import type { BrokerServer } from "./program.ts";
import { type BrokerName, servers, startBroker } from "./servers.ts";

/**
 * Vitest's `globalSetup`: brokers start once a run, and only when a test file asks for one (RabbitMQ takes ten seconds).
 * Test files are processes of their own, so they ask over a port of the loopback.
 */
export async function setup(): Promise<() => Promise<void>> {
  // Somebody keeps brokers running for several runs.
  if (process.env.ONCEKEY_TEST_BROKERS !== undefined) return async () => {};
  const started = new Map<BrokerName, Promise<BrokerServer>>();
  const desk = createServer(async (request, response) => {
    const name = (request.url ?? "").slice(1) as BrokerName;
    try {
      if (!(name in servers)) throw new Error(`There is no broker ${name}.`);
      const broker = started.get(name) ?? startBroker(name);
      started.set(name, broker);
      response.end(JSON.stringify({ port: (await broker).port }));
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  await new Promise<void>((done) => desk.listen(0, "127.0.0.1", done));
  desk.unref();
  const address = desk.address();
  if (address === null || typeof address === "string") throw new Error("The desk has no port.");
  process.env.ONCEKEY_TEST_BROKERS = String(address.port);
  return async () => {
    desk.close();
    const ending = [...started.values()].map(async (broker) => (await broker).close());
    await Promise.allSettled(ending);
  };
}
