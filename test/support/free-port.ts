import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below the range from which systems give ports to outgoing connections. From that range, somebody's connection may take a
 * port before its server listens, or while that is down; a connection that is tried often enough even meets itself there.
 */
const LOWEST = 20_000;
const HIGHEST = 32_000;
const TRIES = 1_000;

const given = new Set<number>();

/** A port of the loopback that nobody listens on, and that this process was not given before. */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < TRIES; tried++) {
    const port = randomInt(LOWEST, HIGHEST);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error(`No free port from ${LOWEST} to ${HIGHEST} on the loopback.`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
