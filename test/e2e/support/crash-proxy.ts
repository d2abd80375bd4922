import { connect, createServer, type Socket } from "node:net";
import { atEnd } from "../../support/postgres.ts";

/** A proxy in front of PostgreSQL that can lose a COMMIT on its way. */
export interface LosingProxy {
  /** The database's connection string through the proxy. */
  readonly url: string;
  /** The next COMMIT never reaches the server, and the connection breaks: the sender cannot know that. */
  loseNextCommit(): void;
}

/** COMMIT as a statement of its own, in either protocol of PostgreSQL; not a word inside another statement. */
const COMMIT_STATEMENT = "COMMIT\0";

/** Starts one on a free port of the loopback; it ends with the test file. */
export async function losingProxy(databaseUrl: string): Promise<LosingProxy> {
  const url = new URL(databaseUrl);
  const upstreamPort = Number(url.port);
  const sockets = new Set<Socket>();
  let armed = false;
  const server = createServer((client) => {
    const upstream = connect(upstreamPort, "127.0.0.1");
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", end).on("close", end);
    }
    client.on("data", (chunk) => {
      if (!armed || !chunk.toString("latin1").includes(COMMIT_STATEMENT)) return void upstream.write(chunk);
      armed = false;
      end();
    });
    upstream.on("data", (chunk) => client.write(chunk));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port.");
  atEnd(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((done) => server.close(done));
  });
  url.port = String(address.port);
  return {
    url: url.href,
    loseNextCommit() {
      armed = true;
    },
  };
}
