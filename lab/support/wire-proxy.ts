import { connect, createServer, type Server, type Socket } from "node:net";

/**
 * What is done to the connection when a piece of bytes comes by.
 *
 * - `cut_before`: nothing of the piece passes, the connection breaks;
 * - `cut_midway`: half of its bytes pass, then it breaks;
 * - `cut_answer`: it passes, and the connection breaks when the other side begins to answer: what was asked is done, and the
 *   asker never hears of it;
 * - `half_close`: it passes, and nothing more will follow in that direction (FIN); the other direction stays open;
 * - `delayMs`: it waits for so long, and what follows waits behind it.
 */
export type Act = "cut_before" | "cut_midway" | "cut_answer" | "half_close" | { readonly delayMs: number };

/** What happens to which bytes. */
export interface Strike {
  /** Bytes on their way to the server, or to the client. */
  readonly toward: "server" | "client";
  /** Which pieces; default: any. */
  readonly matches?: (bytes: Buffer) => boolean;
  readonly act: Act;
}

/** How often a strike is to happen, and for how long it may wait for bytes that match. */
export interface StrikeTerms {
  readonly times: number;
  readonly limitMs: number;
}

/** A TCP proxy on the loopback that passes bytes on, and does to them what it is told. */
export interface WireProxy {
  readonly port: number;
  /** Connections that wait for an answer: the last bytes went towards the server. With `upstream`, only that server's. */
  inFlight(upstream?: number): number;
  /** Resolves with the number of pieces that were struck: `times`, or fewer at the end of the limit. */
  strike(strike: Strike, terms: StrikeTerms): Promise<number>;
  /** Breaks all connections; tells how many of them waited for an answer. */
  cutAll(): number;
  close(): Promise<void>;
}

/** One connection through the proxy. */
interface Link {
  readonly client: Socket;
  readonly upstream: Socket;
  readonly upstreamPort: number;
  /** Whether the last bytes went towards the server. */
  waiting: boolean;
  /** Break as soon as the server answers. */
  cutAnswer: boolean;
}

interface Armed {
  readonly strike: Strike;
  left: number;
  readonly met: () => void;
}

/** Starts one. Connections go to the ports in turn, one after the other, whether or not anybody listens there. */
export async function wireProxy(upstreamPorts: readonly number[]): Promise<WireProxy> {
  const links = new Set<Link>();
  const armed = new Set<Armed>();
  let turn = 0;
  // `allowHalfOpen`: the end of one direction must not end the other by itself.
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const upstreamPort = upstreamPorts[turn++ % upstreamPorts.length] ?? 0;
    const upstream = connect({ port: upstreamPort, host: "127.0.0.1", allowHalfOpen: true });
    const link: Link = { client, upstream, upstreamPort, waiting: false, cutAnswer: false };
    links.add(link);
    join(link, links);
    pass(link, "server", armed);
    pass(link, "client", armed);
  });
  const waiting = (port?: number) =>
    [...links].filter((one) => one.waiting && (port === undefined || one.upstreamPort === port)).length;
  const cutAll = () => {
    const met = waiting();
    for (const link of links) reset(link);
    return met;
  };
  return {
    port: await listening(server),
    inFlight: waiting,
    strike: (strike, terms) => arm(armed, strike, terms),
    cutAll,
    async close() {
      const closed = new Promise((done) => server.close(done));
      cutAll();
      await closed;
    },
  };
}

/** Both sides end together, but for a half that was closed in order. */
function join(link: Link, links: Set<Link>): void {
  for (const socket of [link.client, link.upstream]) {
    socket.setNoDelay(true);
    socket.on("error", () => breakOff(link));
    socket.on("close", () => {
      links.delete(link);
      breakOff(link);
    });
  }
}

function breakOff({ client, upstream }: Link): void {
  client.destroy();
  upstream.destroy();
}

/** As a network does that loses a connection: both sides get an error, not an end. */
function reset({ client, upstream }: Link): void {
  for (const socket of [client, upstream]) {
    if (socket.connecting) socket.destroy();
    else socket.resetAndDestroy();
  }
}

function pass(link: Link, toward: Strike["toward"], armed: Set<Armed>): void {
  const [source, target] = toward === "server" ? [link.client, link.upstream] : [link.upstream, link.client];
  source.on("data", (bytes: Buffer) => {
    if (toward === "client" && link.cutAnswer) return reset(link);
    link.waiting = toward === "server";
    const act = actFor(armed, toward, bytes);
    if (act === null) return send(source, target, bytes);
    strikeAt(link, { source, target, bytes }, act);
  });
  source.on("end", () => target.end());
}

interface Piece {
  readonly source: Socket;
  readonly target: Socket;
  readonly bytes: Buffer;
}

function strikeAt(link: Link, { source, target, bytes }: Piece, act: Act): void {
  switch (act) {
    case "cut_before":
      reset(link);
      break;
    case "cut_midway":
      source.pause();
      target.write(bytes.subarray(0, Math.ceil(bytes.length / 2)), () => breakOff(link));
      break;
    case "cut_answer":
      link.cutAnswer = true;
      send(source, target, bytes);
      break;
    case "half_close":
      target.end(bytes);
      break;
    default:
      source.pause();
      setTimeout(() => {
        send(source, target, bytes);
        source.resume();
      }, act.delayMs);
  }
}

/** Passes bytes on, no faster than they are taken. */
function send(source: Socket, target: Socket, bytes: Buffer): void {
  // A direction that was closed takes nothing more; its peer may still talk.
  if (target.writableEnded || target.destroyed) return;
  if (target.write(bytes)) return;
  source.pause();
  target.once("drain", () => source.resume());
}

function actFor(armed: Set<Armed>, toward: Strike["toward"], bytes: Buffer): Act | null {
  for (const one of armed) {
    const { strike } = one;
    if (one.left === 0 || strike.toward !== toward || strike.matches?.(bytes) === false) continue;
    one.left--;
    one.met();
    return strike.act;
  }
  return null;
}

function arm(armed: Set<Armed>, strike: Strike, { times, limitMs }: StrikeTerms): Promise<number> {
  return new Promise((resolve) => {
    let met = 0;
    const end = () => {
      clearTimeout(timer);
      armed.delete(one);
      resolve(met);
    };
    const timer = setTimeout(end, limitMs);
    const one: Armed = {
      strike,
      left: times,
      met() {
        met++;
        if (met === times) end();
      },
    };
    armed.add(one);
  });
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port.");
  return address.port;
}
