import pg from "pg";
import { awaited, type FaultKind, forMs } from "../fault.ts";
import { MAX_CONNECTIONS } from "../server.ts";

const REFUSED = /too many clients|remaining connection slots/;
const LIMIT_MS = 6_000;
const HELD_MS = 800;
/** Each look reads the whole log. */
const LOG_EVERY_MS = 200;
/** At one time: each of them is a process of the server. */
const AT_ONCE = 10;

/** Every connection of the server is held by somebody else, and the service has lost its own. */
export const connectionsExhausted: FaultKind = {
  name: "connections_exhausted",
  lane: "database",
  async strike({ database: { url, logged }, network }) {
    const before = logged(REFUSED);
    const held: pg.Client[] = [];
    try {
      await holdAll(url, held);
      for (const wire of Object.values(network.database)) wire.cutAll();
      // What the service has just lost is free again, and it wants it back: whoever is faster has it.
      await holdAll(url, held);
      const ours = logged(REFUSED);
      await awaited(() => logged(REFUSED) > ours, LIMIT_MS, LOG_EVERY_MS);
      await forMs(HELD_MS);
    } finally {
      await Promise.all(held.map((one) => one.end().catch(() => undefined)));
    }
    const met = logged(REFUSED) - before;
    return { did: `${held.length} of ${MAX_CONNECTIONS} connections were held; ${met} were refused`, met };
  },
};

/** Opens connections until the server has none left. */
async function holdAll(url: string, held: pg.Client[]): Promise<void> {
  for (let opened = AT_ONCE; opened === AT_ONCE; ) {
    const tried = await Promise.all(Array.from({ length: AT_ONCE }, () => openedClient(url)));
    const clients = tried.filter((one) => one !== null);
    held.push(...clients);
    opened = clients.length;
  }
}

async function openedClient(url: string): Promise<pg.Client | null> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on("error", () => {});
  try {
    await client.connect();
    return client;
  } catch {
    await client.end().catch(() => undefined);
    return null;
  }
}
