import { connect, createServer, type Socket } from "node:net";

/** A proxy in front of PostgreSQL that can lose answers. */
export interface CuttingProxy {
  readonly port: number;
  /** The next COMMIT reaches the server and is carried out; its answer is lost, and with it the connection. */
  loseNextCommitAnswer(): void;
  close(): Promise<void>;
}

/** Starts one on a free port of the loopback. */
export async function cuttingProxy(serverPort: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  let armed = false;
  const server = createServer((client) => {
    const upstream = connect(serverPort, "127.0.0.1");
    let cutting = false;
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", end);
      socket.on("close", () => {
        sockets.delete(socket);
        end();
      });
    }
    client.on("data", (chunk) => {
      if (armed && /commit/i.test(chunk.toString("latin1"))) {
        armed = false;
        cutting = true;
      }
      upstream.write(chunk);
    });
    // The answer has arrived here, so the COMMIT is done; the client never hears of it.
    upstream.on("data", (chunk) => (cutting ? end() : client.write(chunk)));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port.");
  return {
    port: address.port,
    loseNextCommitAnswer() {
      armed = true;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}
