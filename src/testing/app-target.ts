import {
  type ClientRequest,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { request as httpsRequest } from "node:https";
import { type AddressInfo, Server as NetServer } from "node:net";
import { fetchTarget } from "./fetch-target.ts";
import type { HttpAnswer } from "./seen-answer.ts";

/** What Node's `createServer` takes: an Express application, `koa.callback()`, a listener written by hand. */
export type NodeListener = (req: IncomingMessage, res: ServerResponse) => unknown;

/** A Fastify instance, as far as it is used. */
export interface RoutedApp {
  ready(): PromiseLike<unknown>;
  routing(req: IncomingMessage, res: ServerResponse): void;
}

/**
 * An application under test: the base URL of a server that runs (`http://127.0.0.1:3000`), a Node listener (Express, Koa's
 * callback), a Fastify instance, an object with `fetch` (Hono, h3, Yoga), or a function that answers a `Request`. A
 * function with one parameter is taken for the last one, any other for a Node listener.
 */
export type TestableApp =
  | string
  | NodeListener
  | RoutedApp
  | { fetch(request: Request): Response | Promise<Response> }
  | ((request: Request) => Response | Promise<Response>);

/** A request as it is sent, the same bytes each time. */
export interface SentRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array | null;
}

/** A send whose client went away. */
export interface HungUp {
  /** Whether the application is done with it: it has answered into the void. */
  isOver(): boolean;
  /** What a Node listener raised of it so far; `null` where it raised nothing, or where nobody can know. */
  raised(): Raised | null;
}

/** Something that was raised, which may be `undefined` itself. */
export interface Raised {
  readonly error: unknown;
}

/** A way to send requests to an application. */
export interface Target {
  send(request: SentRequest): Promise<HttpAnswer>;
  /** Sends the whole request and hangs up once the application has begun with it. */
  hangUp(request: SentRequest): Promise<HungUp>;
  /** Ends the server that was started for it, every connection to it, and the reading of answers without an end. */
  close(): Promise<void>;
}

/**
 * Opens an application: a Node listener is served on a free port of this machine, a fetch handler is called directly. Raises
 * a `TypeError` for what is no application; what a listener raises, the send raises that it came of.
 */
export async function openTarget(app: TestableApp): Promise<Target> {
  if (typeof app === "string") return urlTarget(app);
  if (typeof app === "function") {
    const isFetch = app.length <= 1;
    return isFetch ? fetchTarget(app as (request: Request) => Promise<Response>) : await served(app as NodeListener);
  }
  if (hasMethods(app, ["fetch"])) return fetchTarget((request) => app.fetch(request));
  if (!hasMethods(app, ["ready", "routing"])) throw notTestable(app);
  await app.ready();
  return await served((req, res) => app.routing(req, res));
}

/** Plain JavaScript hands over what the types refuse, `null` as well. */
function hasMethods<G, M extends string>(given: G, names: readonly M[]): given is Extract<G, Record<M, unknown>> {
  const members = (given ?? {}) as Record<string, unknown>;
  return names.every((name) => typeof members[name] === "function");
}

function notTestable(given: unknown): TypeError {
  const hints = [
    given instanceof NetServer ? "Of an http.Server give the listener, or its base URL once it listens." : null,
    hasMethods(given, ["callback"]) ? "Of a Koa application give app.callback()." : null,
  ].filter((hint) => hint !== null);
  const may =
    "An app may be a base URL, a Node listener (req, res), an Express application, Koa's callback, a Fastify instance, " +
    "an object with `fetch`, or a function that answers a Request.";
  return new TypeError([may, ...hints].join(" "));
}

/** A request that is on its way to a served listener. */
interface Arrival {
  /** Called once the listener is about to get it. */
  readonly began: () => void;
  readonly hangsUp: boolean;
  /** Whether it was answered, or raised. */
  over: boolean;
  /** Whether its send has ended, so that nobody listens any more. */
  heard: boolean;
  raised: Raised | null;
}

const arrivalOf = (hangsUp: boolean, began: () => void): Arrival => ({
  ...{ began, hangsUp, over: false, heard: false, raised: null },
});

/** A served listener knows its requests by the client's port: to hang up after they arrived, and whose error is whose. */
async function served(listener: NodeListener): Promise<Target> {
  const arrivals = new Map<number, Arrival>();
  const server = createServer((req, res) => arrive(listener, req, res, arrivals.get(req.socket.remotePort ?? 0)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const connections = openConnections();
  const open = (request: SentRequest, arrival: Arrival) => {
    const sending = connections.open(`http://127.0.0.1:${port}`, request);
    sending.once("socket", (socket) => socket.once("connect", () => arrivals.set(socket.localPort ?? 0, arrival)));
    return sending;
  };
  return {
    async send(request) {
      const arrival = arrivalOf(false, () => {});
      const [answer] = await Promise.allSettled([answerTo(open(request, arrival), request)]);
      arrival.heard = true;
      if (arrival.raised !== null) throw arrival.raised.error;
      if (answer.status === "rejected") throw answer.reason;
      return answer.value;
    },
    async hangUp(request) {
      let began = () => {};
      const begun = new Promise<void>((resolve) => {
        began = resolve;
      });
      const arrival = arrivalOf(true, began);
      await cutAfter(open(request, arrival), request, begun);
      return { isOver: () => arrival.over, raised: () => arrival.raised };
    },
    async close() {
      connections.cut();
      await closeServer(server);
    },
  };
}

/** Hands a request to the listener. What that raises, at once or later, belongs to the request. */
function arrive(listener: NodeListener, req: IncomingMessage, res: ServerResponse, arrival = arrivalOf(false, noop)) {
  if (arrival.hangsUp) {
    res.end = ended(res, () => {
      arrival.over = true;
    });
  }
  arrival.began();
  const run = async () => listener(req, res);
  run().catch((error: unknown) => {
    // After the answer was read nobody is left to be told: a process dies of such an error, and a test run should.
    if (arrival.heard) throw error;
    arrival.raised = { error };
    arrival.over = true;
    res.destroy();
  });
}

const noop = () => {};

function ended(res: ServerResponse, over: () => void): ServerResponse["end"] {
  const end = res.end as (...given: unknown[]) => ServerResponse;
  return ((...given: unknown[]) => {
    over();
    return end.apply(res, given);
  }) as ServerResponse["end"];
}

async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}

function urlTarget(base: string): Target {
  const connections = openConnections();
  return {
    send: (request) => answerTo(connections.open(base, request), request),
    async hangUp(request) {
      await cutAfter(connections.open(base, request), request, Promise.resolve());
      // From outside nobody can tell when the server is done with it.
      return { isOver: () => true, raised: () => null };
    },
    close: async () => connections.cut(),
  };
}

/** The connections that are open: a server that never answers, or never reads, would keep the process alive. */
function openConnections() {
  const all = new Set<ClientRequest>();
  return {
    open(base: string, request: SentRequest): ClientRequest {
      const sending = openRequest(base, request);
      all.add(sending.once("close", () => all.delete(sending)));
      return sending;
    },
    cut(): void {
      for (const sending of all) sending.on("error", () => {}).destroy();
    },
  };
}

/** A connection of its own for each: requests at one moment must not wait for each other's. */
function openRequest(base: string, { method, path, headers, body }: SentRequest): ClientRequest {
  const url = new URL(path, base);
  const sending = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, { method, agent: false });
  const names = new Set(headers.map(([name]) => name));
  for (const name of names) {
    const values = headers.filter((line) => line[0] === name).map(([, value]) => value);
    sending.setHeader(name, values.length === 1 ? (values[0] ?? "") : values);
  }
  if (body !== null) sending.setHeader("content-length", body.byteLength);
  return sending;
}

function writeBody(sending: ClientRequest, { body }: SentRequest): void {
  if (body === null) sending.end();
  else sending.end(body);
}

/** Sends a request whole, waits until it has `begun`, and cuts the connection. */
async function cutAfter(sending: ClientRequest, request: SentRequest, begun: Promise<void>): Promise<void> {
  const failed = new Promise<never>((_, reject) => sending.once("error", reject));
  const flushed = new Promise<void>((resolve) => sending.once("finish", resolve));
  writeBody(sending, request);
  // Some requests are answered by the server itself, and never reach the application.
  const answered = new Promise<void>((resolve) => sending.once("response", (answer) => resolve(void answer.resume())));
  await Promise.race([Promise.all([begun, flushed]), answered, failed]);
  // What the cut itself raises is meant; it must find a listener.
  failed.catch(() => {});
  sending.on("error", () => {});
  sending.destroy();
}

async function answerTo(sending: ClientRequest, request: SentRequest): Promise<HttpAnswer> {
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    sending.once("response", resolve);
    sending.once("error", reject);
  });
  writeBody(sending, request);
  const answer = await answered;
  const chunks: Buffer[] = [];
  for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk);
  return { status: answer.statusCode ?? 0, headers: pairsOf(answer.rawHeaders), body: Buffer.concat(chunks) };
}

/** Pairs of Node's flat list of names and values, names in lower case. */
export function pairsOf(flat: readonly string[]): [name: string, value: string][] {
  return flat.flatMap((name, at) => (at % 2 === 0 ? [[name.toLowerCase(), flat[at + 1] ?? ""]] : [])) as [
    string,
    string,
  ][];
}
