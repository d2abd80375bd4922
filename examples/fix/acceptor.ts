import { createServer, type Socket } from "node:net";
import { type FixMessage, readMessage, splitMessages, tag } from "./message.ts";
import type { Sql } from "./orders.ts";
import { type Session, type Taken, takeMessage, type Venue } from "./session.ts";

/** Who may log on: its CompID, what proves that it is the one, and whose orders they are. */
export interface Counterparty {
  readonly tenant: string;
  readonly password: string;
}

/** What an acceptor works with. */
export interface AcceptorOptions<Tx extends Sql> extends Venue<Tx> {
  readonly us: string;
  readonly counterparties: ReadonlyMap<string, Counterparty>;
  /** Default: any free one. */
  readonly port?: number;
  /** The trading day that begins with a Logon, as `YYYYMMDD`. Default: that of UTC. */
  readonly day?: () => string;
  /** Called when a message's transaction is committed and nobody has heard of it yet. */
  readonly beforeAnswer?: (message: FixMessage) => void;
  readonly report: (error: unknown) => void;
}

/** A running acceptor. */
export interface Acceptor {
  readonly port: number;
  close(): Promise<void>;
}

const utcDay = () => new Date().toISOString().slice(0, 10).replaceAll("-", "");

/** Listens on the loopback. */
export async function startAcceptor<Tx extends Sql>(options: AcceptorOptions<Tx>): Promise<Acceptor> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    serve(options, socket);
  });
  await new Promise<void>((done) => server.listen(options.port ?? 0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The acceptor has no port.");
  return {
    port: address.port,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}

/** Far more than a message has: what is longer without an end is none. */
const LONGEST = 65_536;

/** One message after the other: the numbers say that they have an order. */
function serve<Tx extends Sql>(options: AcceptorOptions<Tx>, socket: Socket): void {
  let arrived = "";
  let session: Session | null = null;
  let turn = Promise.resolve();
  const take = async (text: string) => {
    const message = readMessage(text);
    if (message === null || socket.destroyed) return;
    session ??= loggedOn(options, message);
    const taken = session?.sender === message.sender ? await takeMessage(options, session, message) : STRANGER;
    options.beforeAnswer?.(message);
    answer(socket, taken);
  };
  socket.on("data", (chunk) => {
    const { whole, rest } = splitMessages(arrived + chunk.toString("latin1"));
    arrived = rest;
    if (rest.length > LONGEST) socket.destroy();
    for (const text of whole) {
      turn = turn
        .then(() => take(text))
        .catch((error: unknown) => {
          options.report(error);
          socket.destroy();
        });
    }
  });
}

const STRANGER: Taken = { send: [], hangUp: true };

/** The session that a Logon proves; `null`: it proves nothing. */
function loggedOn<Tx extends Sql>(
  { us, counterparties, day = utcDay }: AcceptorOptions<Tx>,
  { type, sender, target, get }: FixMessage,
): Session | null {
  const known = counterparties.get(sender);
  if (type !== "A" || target !== us || known === undefined || get(tag.password) !== known.password) return null;
  return { tenant: known.tenant, sender, us, day: day() };
}

function answer(socket: Socket, { send, hangUp }: Taken): void {
  for (const message of send) socket.write(message, "latin1");
  if (hangUp) socket.end();
}
