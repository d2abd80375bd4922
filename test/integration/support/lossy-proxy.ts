import { connect, createServer, type Socket } from "node:net";
import { freePort } from "../../support/free-port.ts";
import { gate } from "../../support/gate.ts";

/**
 * What becomes of a message to the server, and of its connection. `answer`: it arrives, its answer is lost. `message`: it
 * never arrives. `in_flight`: the client's connection breaks, and the message arrives when the test says so.
 */
export type HowLost = "answer" | "message" | "in_flight";

/** The message that commits, as either driver writes it; not a mention of it inside a statement. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the protocol's own framing.
export const COMMIT = /[\x00-\x1f]commit\x00/i;

/** A loss that was ordered. */
export interface Loss {
  /** Resolves when it has happened. */
  readonly met: Promise<void>;
  /** Lets a message that is in flight arrive. */
  arrive(): void;
}

/** A network in front of PostgreSQL that loses what it is told to lose. */
export interface LossyProxy {
  urlOf(url: string): string;
  /** Loses the next message to the server that matches. */
  loseNext(message: RegExp, how: HowLost): Loss;
  /** From now on nothing passes in either direction on the open connections, and nothing closes them. */
  goSilent(): void;
  /** Cuts every connection and refuses new ones, as a machine does whose server is stopped. */
  cut(): void;
  /** Accepts connections again, at the same address. */
  mend(): Promise<void>;
  close(): Promise<void>;
}

interface Line {
  readonly client: Socket;
  readonly server: Socket;
  silent: boolean;
  /** Answers are lost from here on, and with the first of them the connection. */
  losing: boolean;
}

interface Order {
  readonly message: RegExp;
  readonly how: HowLost;
  readonly met: () => void;
  readonly arrived: Promise<void>;
}

/** Starts one on a free port of the loopback. */
export async function lossyProxy(serverPort: number): Promise<LossyProxy> {
  const lines = new Set<Line>();
  let orders: Order[] = [];
  const listener = createServer((client) => {
    const line: Line = { client, server: connect(serverPort, "127.0.0.1"), silent: false, losing: false };
    lines.add(line);
    wire(line, () => lines.delete(line));
    client.on("data", (chunk) => {
      const order = orders.find(({ message }) => message.test(chunk.toString("latin1")));
      orders = orders.filter((other) => other !== order);
      if (order === undefined) pass(line, line.server, chunk);
      else lose(line, order, chunk);
    });
    line.server.on("data", (chunk) => (line.losing ? hangUp(line) : pass(line, client, chunk)));
  });
  const listen = (on: number) => new Promise<void>((done) => listener.listen(on, "127.0.0.1", done));
  // Not any port that the system gives: a connection could take it while the proxy is away.
  await listen(await freePort());
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port.");
  const hangUpAll = () => lines.forEach(hangUp);
  return {
    urlOf: (url) => Object.assign(new URL(url), { port: String(address.port) }).href,
    loseNext(message, how) {
      const met = gate();
      const arrived = gate();
      orders.push({ message, how, met: met.open, arrived: arrived.promise });
      return { met: met.promise, arrive: arrived.open };
    },
    goSilent() {
      for (const line of lines) line.silent = true;
    },
    cut() {
      listener.close();
      hangUpAll();
    },
    mend: () => listen(address.port),
    async close() {
      hangUpAll();
      await new Promise((done) => listener.close(done));
    },
  };
}

/** One side's end is the other's, unless the line is silent. */
function wire(line: Line, ended: () => void): void {
  const end = () => {
    if (line.silent) return;
    ended();
    hangUp(line);
  };
  for (const socket of [line.client, line.server]) {
    socket.on("error", end);
    socket.on("close", end);
  }
}

function pass(line: Line, to: Socket, chunk: Buffer): void {
  if (!line.silent) to.write(chunk);
}

function lose(line: Line, { how, met, arrived }: Order, chunk: Buffer): void {
  if (how === "answer") {
    line.losing = true;
    line.server.write(chunk);
  } else if (how === "message") {
    hangUp(line);
  } else {
    // The server's side stays up by itself: the message is on its way.
    line.silent = true;
    line.client.destroy();
    void arrived.then(() => line.server.end(chunk));
  }
  met();
}

function hangUp(line: Line): void {
  line.client.destroy();
  line.server.destroy();
}
