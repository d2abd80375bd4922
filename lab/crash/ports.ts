import { createServer } from "node:net";
import { randomOf } from "../support/random.ts";

/** Where the processes listen, over all of their lives. */
export interface Ports {
  readonly apis: readonly number[];
  readonly psp: number;
  readonly database: number;
}

/**
 * Below the range from which the system gives ports to outgoing connections. From that range, somebody's connection may take
 * a port while its process is down; a connection that is tried often enough even meets itself there.
 */
const LOWEST = 20_000;
const HIGHEST = 32_000;
const TRIES = 1_000;

/** Ports that nobody listens on now, for so many APIs. */
export async function choosePorts(apis: number): Promise<Ports> {
  const random = randomOf(process.pid, "ports", Date.now());
  const free = new Set<number>();
  for (let tried = 0; free.size < apis + 2; tried++) {
    if (tried === TRIES) throw new Error(`No free ports from ${LOWEST} to ${HIGHEST} on the loopback.`);
    const port = random.between(LOWEST, HIGHEST);
    if (await isFree(port)) free.add(port);
  }
  const [psp = 0, database = 0, ...rest] = free;
  return { apis: rest, psp, database };
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
