import { openDesk } from "../desk.ts";
import type { BrokerServer } from "./program.ts";
import { type BrokerName, servers, startBroker } from "./servers.ts";

/**
 * Vitest's `globalSetup`: brokers start once a run, and only when a test file asks for one (RabbitMQ takes ten seconds).
 */
export async function setup(): Promise<() => Promise<void>> {
  // Somebody keeps brokers running for several runs.
  if (process.env.ONCEKEY_TEST_BROKERS !== undefined) return async () => {};
  const started = new Map<BrokerName, Promise<BrokerServer>>();
  const desk = await openDesk(async (path) => {
    const name = path.slice(1) as BrokerName;
    if (!(name in servers)) throw new Error(`There is no broker ${name}.`);
    const broker = started.get(name) ?? startBroker(name);
    started.set(name, broker);
    return JSON.stringify({ port: (await broker).port });
  });
  process.env.ONCEKEY_TEST_BROKERS = String(desk.port);
  return async () => {
    desk.close();
    const ending = [...started.values()].map(async (broker) => (await broker).close());
    await Promise.allSettled(ending);
  };
}
