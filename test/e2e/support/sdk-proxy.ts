import { createServer, request as httpRequest, type IncomingMessage, type RequestListener } from "node:http";
import { createServer as createTlsServer, type ServerOptions } from "node:https";
import { connect, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { atEnd } from "../../support/postgres.ts";

/** What is done to one request on its way. */
export interface Plan {
  /** `before`: the API never sees it. `after`: the API's whole answer was made, and none of it is delivered. */
  readonly cut?: "before" | "after";
  /** Added to what the SDK sends, such as `x-lab-delay-ms`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What the API answered; names of headers in lower case. */
export interface SdkAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** One HTTP request as the SDK sent it, and what the API answered. */
export interface SdkAttempt {
  readonly method: string;
  readonly target: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly cut: "before" | "after" | null;
  /** `null`: the API was never asked, or has not answered yet. */
  answer: SdkAnswer | null;
}

/** Stands between an SDK and the API: passes bytes on, and breaks connections where a test says so. */
export interface SdkProxy {
  readonly port: number;
  /** Every request so far, in the order of arrival. */
  readonly attempts: readonly SdkAttempt[];
  /** The next requests' plans, one each, in order; requests without a plan pass. */
  plan(...plans: readonly Plan[]): void;
}

/** Starts one on a free port of the loopback; it ends with the test file. `tls`: for SDKs that speak nothing else. */
export async function sdkProxy(apiUrl: string, tls?: ServerOptions): Promise<SdkProxy> {
  const plans: Plan[] = [];
  const attempts: SdkAttempt[] = [];
  const listener: RequestListener = async (request, response) => {
    const plan = plans.shift() ?? {};
    const body = await bytesOf(request);
    const attempt = attemptOf(request, body, plan);
    attempts.push(attempt);
    if (plan.cut === "before") return void request.socket.destroy();
    try {
      const answer = await forward(apiUrl, request, body, plan.headers ?? {});
      const answered = await bytesOf(answer);
      const { statusCode: status = 0, headers } = answer;
      attempt.answer = { status, headers: flat(headers), body: answered.toString("utf8") };
      if (plan.cut === "after") return void request.socket.destroy();
      response.writeHead(status, withoutConnection(answer.rawHeaders)).end(answered);
    } catch {
      // The API's own connection broke: so does the SDK's.
      request.socket.destroy();
    }
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  const port = await listening(server);
  atEnd(async () => {
    const closed = new Promise((done) => server.close(done));
    server.closeAllConnections();
    await closed;
  });
  return { port, attempts, plan: (...more) => void plans.push(...more) };
}

function attemptOf({ method = "", url = "", headers }: IncomingMessage, body: Buffer, { cut }: Plan): SdkAttempt {
  return { method, target: url, headers: flat(headers), body: body.toString("utf8"), cut: cut ?? null, answer: null };
}

function forward(
  apiUrl: string,
  { method, url, rawHeaders }: IncomingMessage,
  body: Buffer,
  more: Readonly<Record<string, string>>,
): Promise<IncomingMessage> {
  const { hostname, port } = new URL(apiUrl);
  const headers = [...withoutConnection(rawHeaders), "connection", "close", ...Object.entries(more).flat()];
  return new Promise((resolve, reject) => {
    // Types know only the object form; the flat list keeps the order, the spelling and the repeats of the client.
    const options = { hostname, port, method, path: url, headers: headers as never, agent: false };
    httpRequest(options, resolve).on("error", reject).end(body);
  });
}

/** Without the lines that belong to one connection only. */
function withoutConnection(rawHeaders: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = "", value = ""] = rawHeaders.slice(at, at + 2);
    if (!/^(?:connection|keep-alive)$/i.test(name)) kept.push(name, value);
  }
  return kept;
}

function flat(headers: IncomingMessage["headers"]): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

async function bytesOf(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** A database behind a switch. */
export interface SwitchedDatabase {
  /** The connection string through the switch. */
  readonly url: string;
  /** Breaks every connection and refuses new ones. */
  down(): void;
  up(): void;
}

/** Puts a switch in front of a database; it ends with the test file. */
export async function switchedDatabase(databaseUrl: string): Promise<SwitchedDatabase> {
  const url = new URL(databaseUrl);
  const upstreamPort = Number(url.port);
  const sockets = new Set<Socket>();
  let isUp = true;
  const server = createTcpServer((client) => {
    if (!isUp) return void client.destroy();
    const upstream = connect(upstreamPort, url.hostname);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one
        .on("error", () => other.destroy())
        .on("close", () => {
          sockets.delete(one);
          other.destroy();
        });
      one.pipe(other);
    }
  });
  const cutAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  url.port = String(await listening(server));
  atEnd(async () => {
    const closed = new Promise((done) => server.close(done));
    cutAll();
    await closed;
  });
  return {
    url: url.href,
    down() {
      isUp = false;
      cutAll();
    },
    up() {
      isUp = true;
    },
  };
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port.");
  return address.port;
}
