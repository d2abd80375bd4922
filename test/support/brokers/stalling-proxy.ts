import { once as event } from "node:events";
import { type AddressInfo, createConnection, createServer } from "node:net";

/** A proxy that can hold back what a client writes, as a broker under a memory alarm leaves it unread. */
export interface StallingProxy {
  readonly port: number;
  stall(): void;
  /** How many writes are held back. */
  writes(): number;
  /** Lets all of them pass, in one go. */
  flow(): void;
  close(): Promise<void>;
}

/** Starts one on a free port of the loopback. */
export async function stallingProxy(target: number): Promise<StallingProxy> {
  let stalled: (() => void)[] | null = null;
  const server = createServer((client) => {
    const upstream = createConnection(target, "127.0.0.1");
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on("error", () => {}).on("close", () => other.destroy());
    }
    upstream.pipe(client);
    client.on("data", (chunk) => {
      if (stalled === null) upstream.write(chunk);
      else stalled.push(() => void upstream.write(chunk));
    });
  });
  server.listen(0, "127.0.0.1");
  await event(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    stall() {
      stalled = [];
    },
    writes: () => stalled?.length ?? 0,
    flow() {
      for (const pass of stalled ?? []) pass();
      stalled = null;
    },
    close: async () => void server.close(),
  };
}
