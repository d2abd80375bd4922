import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { freePort } from "./free-port.ts";

/** One request as it came over the wire. */
export interface Arrived {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly bytes: Buffer;
}

/** How one request is answered; also by cutting the connection, or never. */
export type Reply = (response: ServerResponse, arrived: Arrived, nth: number) => unknown;

/** A server on the loopback that answers as it is told, and remembers all that came. */
export interface ClientServer {
  readonly url: string;
  readonly arrived: Arrived[];
  /** The replies still due, in order; the last one stays. */
  replies: Reply[];
  /** How many requests are being answered. */
  open(): number;
  close(): Promise<void>;
}

/** Starts one on a free port, or on the given one. */
export async function startClientServer(given?: number): Promise<ClientServer> {
  // Tests close it and open it again: meanwhile no connection may take its port.
  const port = given ?? (await freePort());
  const arrived: Arrived[] = [];
  let open = 0;
  const server = createServer((request, response) => {
    open++;
    response.on("close", () => open--);
    void take(request).then((one) => {
      arrived.push(one);
      const reply = own.replies.length > 1 ? own.replies.shift() : own.replies[0];
      (reply ?? json(201, {}))(response, one, arrived.length);
    });
  });
  await new Promise<void>((done) => server.listen(port, "127.0.0.1", done));
  const own: ClientServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrived,
    replies: [],
    open: () => open,
    async close() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
  return own;
}

async function take(request: IncomingMessage): Promise<Arrived> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  const { method = "", url = "", headers } = request;
  return { method, path: url, headers, body: bytes.toString(), bytes };
}

/** Answers with JSON. */
export function json(status: number, value: unknown, headers: Record<string, string> = {}): Reply {
  return (response) =>
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
}

/** Answers with a problem of Oncekey's. */
export function problem(status: number, code: string, retry: string, headers: Record<string, string> = {}): Reply {
  return json(
    status,
    { type: `/problems/${code}`, status, code, retry, state: "none" },
    {
      "content-type": "application/problem+json",
      ...headers,
    },
  );
}

/** Answers with any text. */
export function text(status: number, body: string, headers: Record<string, string> = {}): Reply {
  return (response) => response.writeHead(status, headers).end(body);
}

/** Takes the request, and cuts the connection. */
export const cut: Reply = (response) => response.socket?.destroy();

/** Takes the request, and never answers. */
export const silence: Reply = () => {};

/** Polls until it holds; fails after ten seconds. */
export async function until(holds: () => unknown, what = "the condition"): Promise<void> {
  const endMs = performance.now() + 10_000;
  while (!holds()) {
    if (performance.now() > endMs) throw new Error(`After ten seconds: ${what} does not hold.`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
