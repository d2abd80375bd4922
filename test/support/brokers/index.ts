import { afterAll, it } from "vitest";
import type { BrokerServer } from "./program.ts";
import { type BrokerName, missingBroker, servers, startBroker } from "./servers.ts";

const own = new Map<BrokerName, Promise<BrokerServer>>();

afterAll(async () => {
  for (const server of own.values()) await (await server).close();
});

/** The port of the run's broker (see global.ts), or of one of this test file's own. */
export async function brokerPort(name: BrokerName): Promise<number> {
  const desk = process.env.ONCEKEY_TEST_BROKERS;
  if (desk === undefined) {
    const server = own.get(name) ?? startBroker(name);
    own.set(name, server);
    return (await server).port;
  }
  const response = await fetch(`http://127.0.0.1:${desk}/${name}`);
  if (!response.ok) throw new Error(await response.text());
  return ((await response.json()) as { port: number }).port;
}

/**
 * Starts all brokers that are installed, at the same time. To be called by a test file's `beforeAll`: RabbitMQ takes ten
 * seconds, which are nobody's test.
 */
export async function startBrokers(): Promise<void> {
  const names = Object.keys(servers) as BrokerName[];
  await Promise.all(names.filter((name) => missingBroker(name) === null).map(brokerPort));
}

/** Registers tests that need a broker, or one skipped test that says what to install. In CI that is a failure. */
export function withBroker(name: BrokerName, register: () => void): void {
  const missing = missingBroker(name);
  if (missing === null) {
    register();
    return;
  }
  it(`with a real ${name}`, (context) => {
    if (process.env.CI === "true") throw new Error(`${missing}. CI must not skip this.`);
    context.skip(missing);
  });
}
