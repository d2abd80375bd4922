import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { created, createOncekey } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { idempotent } from "oncekey/node";
import { onTestFinished } from "vitest";

/** One request as it came. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly key: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** One request that waits for its answer. */
export interface HostileExchange {
  readonly request: SeenRequest;
  readonly response: ServerResponse;
  readonly socket: Socket;
  /** Lets the API do it, and gives its answer. */
  work(): Promise<ApiAnswer>;
}

interface ApiAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** What becomes of one request. */
export type Step = (exchange: HostileExchange) => unknown;

/** A server in front of a real Oncekey API that does what it is told with the next requests, and serves all others. */
export interface HostileServer {
  readonly url: string;
  readonly seen: SeenRequest[];
  /** Bodies that the API carried out, in order. */
  readonly executed: string[];
  /** One step for each of the next requests; what comes after them is served. */
  plan(...steps: Step[]): void;
  /** From now on, the API knows no key any more: a server whose retention is over. */
  forget(): Promise<void>;
}

/** Passes the request on, and the answer back. */
export const serve: Step = async ({ work, response }) => {
  const { status, headers, body } = await work();
  response.writeHead(status, headers).end(body);
};

/** Ends the connection before the API hears of the request. */
export const cutBefore: Step = ({ socket }) => void socket.destroy();

/** Lets the API do it, and ends the connection without an answer. */
export const cutAfter: Step = async ({ work, socket }) => {
  await work();
  socket.destroy();
};

/** Answers this, and the API never hears of the request. */
export function answer(status: number, headers: Record<string, string> = {}, body = ""): Step {
  return ({ response }) => void response.writeHead(status, headers).end(body);
}

/** Writes these bytes in place of an answer and ends the connection; with `worked`, the API does it first. */
export function raw(text: string, { worked = false } = {}): Step {
  return async ({ work, socket }) => {
    if (worked) await work();
    socket.end(text, "latin1");
  };
}

/** Starts both, until the test ends. */
export async function hostileServer(): Promise<HostileServer> {
  const executed: string[] = [];
  const seen: SeenRequest[] = [];
  let steps: Step[] = [];
  let api = await startApi(executed);
  const url = await listen(async (request, response) => {
    const socket = response.socket as Socket;
    // Browsers ask for this when they like, and must not take another request's step.
    const step = (request.path === "/favicon.ico" ? undefined : steps.shift()) ?? serve;
    seen.push(request);
    await step({ request, response, socket, work: () => ask(api, request) });
  });
  return {
    url,
    seen,
    executed,
    plan(...next) {
      steps = next;
    },
    async forget() {
      api = await startApi(executed);
    },
  };
}

async function startApi(executed: string[]): Promise<string> {
  const once = createOncekey({ store: memoryStore() });
  const scope = () => ({ tenant: "acme", client: null });
  const write = once.transaction({
    name: "things.create",
    version: 1,
    async run({ input }) {
      executed.push(JSON.stringify(input.body));
      return created(`/things/${executed.length}`, { number: executed.length, of: input.body });
    },
  });
  const reconcile = async () => ({ kind: "unknown", why: "never asked" }) as const;
  const upload = once.capture({ name: "files.create", version: 1, maxDurationMs: 30_000, reconcile });
  await once.start();
  const things = idempotent(write, { scope });
  const files = idempotent(upload, { scope }, (_req, res) => {
    executed.push("a file");
    res.writeHead(201).end();
  });
  return await serveUntilTestEnds((req, res) => {
    if (req.method === "GET" || req.method === "HEAD")
      res.writeHead(200, { "content-type": "application/json" }).end("{}");
    else (req.url === "/files" ? files : things)(req, res);
  });
}

function listen(handle: (request: SeenRequest, response: ServerResponse) => Promise<unknown>): Promise<string> {
  let ended = false;
  onTestFinished(() => {
    ended = true;
  });
  return serveUntilTestEnds(async (req, res) => {
    const body = await wholeBody(req);
    // A client that went away in the middle of its request has asked for nothing.
    if (body === null) return;
    const { method = "", url = "", headers } = req;
    const key = headers["idempotency-key"] as string | undefined;
    await handle({ method, path: url, key, headers, body }, res).catch((error: unknown) => {
      // A client may give up on a request that is under way, and then the test ends with it.
      if (!ended) throw error;
    });
  });
}

async function wholeBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer);
  } catch {
    return null;
  }
  return Buffer.concat(chunks).toString("latin1");
}

type Listener = Parameters<typeof createServer>[1] & {};

async function serveUntilTestEnds(listener: Listener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The request, word for word, to the API behind. */
function ask(api: string, { method, path, headers, body }: SeenRequest): Promise<ApiAnswer> {
  const { "transfer-encoding": _framing, expect: _expect, connection: _connection, ...kept } = headers;
  const bytes = Buffer.from(body, "latin1");
  const framed = { ...kept, "content-length": String(bytes.length) };
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${api}${path}`, { method, headers: framed }, async (answer) => {
      const chunks: Buffer[] = [];
      for await (const chunk of answer) chunks.push(chunk as Buffer);
      const { "transfer-encoding": _, connection: _kept, "keep-alive": _alive, ...headers } = answer.headers;
      resolve({ status: answer.statusCode ?? 0, headers, body: Buffer.concat(chunks) });
    });
    request.on("error", reject).end(bytes);
  });
}
