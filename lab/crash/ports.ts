import { freePort } from "../../test/support/free-port.ts";

/** Where the processes listen, over all of their lives. */
export interface Ports {
  readonly apis: readonly number[];
  readonly psp: number;
  readonly database: number;
}

/** Ports that nobody listens on now, for so many APIs. */
export async function choosePorts(apis: number): Promise<Ports> {
  const ports = { psp: await freePort(), database: await freePort() };
  const rest: number[] = [];
  while (rest.length < apis) rest.push(await freePort());
  return { apis: rest, ...ports };
}
