import { connect, createServer, type Socket } from "node:net";

/** A proxy in front of a server of the loopback, which can play an outage. */
export interface OutageProxy {
  readonly port: number;
  /** Cuts every connection, and each new one at once. */
  away(): void;
  /** Connections stay, new ones are accepted, and nothing arrives any more in either direction. */
  silent(): void;
  /** The end of the outage. What a silent connection swallowed is lost: it is cut. */
  back(): void;
  close(): Promise<void>;
}

/** Starts one on a free port of the loopback; `target` may be told later, by a server that must know this port. */
export async function outageProxy(target: number | (() => number)): Promise<OutageProxy> {
  const sockets = new Set<Socket>();
  let mode: "back" | "away" | "silent" = "back";
  const cutAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  const join = (from: Socket, to: Socket) => {
    sockets.add(from);
    from.on("data", (chunk) => {
      if (mode === "back") to.write(chunk);
    });
    from.on("error", () => {});
    from.on("close", () => {
      sockets.delete(from);
      to.destroy();
    });
  };
  const server = createServer((client) => {
    if (mode === "away") {
      client.destroy();
      return;
    }
    const upstream = connect(typeof target === "number" ? target : target(), "127.0.0.1");
    join(client, upstream);
    join(upstream, client);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port.");
  return {
    port: address.port,
    away() {
      mode = "away";
      cutAll();
    },
    silent() {
      mode = "silent";
    },
    back() {
      mode = "back";
      cutAll();
    },
    async close() {
      cutAll();
      await new Promise((done) => server.close(done));
    },
  };
}
