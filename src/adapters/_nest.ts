import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ReadBody } from "../http/body.ts";
import type { BodyRead, Exchange } from "../http/exchange.ts";
import type { Gate, Handled, HttpHandler } from "../http/gate.ts";
import { captureNode, nodeHeaderLines, readNodeBody } from "./_node.ts";

/** What is used of a request in Nest: Express's own, or Fastify's. */
export interface NestRequest {
  readonly method: string;
  readonly originalUrl: string;
  readonly params: unknown;
}

/** The request with what only one of the platforms has. */
interface AnyRequest extends NestRequest {
  /** Fastify: Node's request behind it. */
  readonly raw?: IncomingMessage;
  /** Kept by Nest with `rawBody: true`. */
  readonly rawBody?: unknown;
  body?: unknown;
}

/** Fastify's reply, of which Node's response is a part. */
interface FastifyReply {
  readonly raw: ServerResponse;
  getHeaders(): Record<string, string | number | string[]>;
  hijack(): unknown;
  send(): unknown;
}

/** Express's response, or Fastify's reply. */
export type NestResponse = ServerResponse | FastifyReply;

/** One request as Nest hands it to an interceptor. */
export interface NestCall<Request> {
  readonly request: Request;
  readonly response: NestResponse;
  /** Calls what comes after the interceptor: pipes and the method. */
  handle(): unknown;
}

/** The platform's exchange. */
function nestExchange<Request extends NestRequest>(request: Request, captures: boolean): Exchange<Request> {
  const params = Object.entries((request.params ?? {}) as Record<string, string | string[]>);
  return {
    native: request,
    method: request.method,
    target: request.originalUrl,
    params: Object.fromEntries(params.map(([name, value]) => [name, Array.isArray(value) ? value.join("/") : value])),
    headerLines: (name) => nodeHeaderLines(rawRequest(request), name),
    readBody: (limitBytes) => readNestBody(request, limitBytes, captures),
  };
}

const rawRequest = (request: AnyRequest): IncomingMessage => request.raw ?? (request as unknown as IncomingMessage);

async function readNestBody(request: AnyRequest, limitBytes: number, captures: boolean): Promise<BodyRead> {
  const raw = rawRequest(request);
  // Uploads are read by an interceptor or a pipe that comes after us; what we give to the method ourselves is not.
  const keepStream = captures && !isParsed(raw.headers["content-type"]);
  return fastifyBody(request) ?? readNodeBody(raw, limitBytes, keepStream);
}

const isParsed = (type = "") => /^\s*(?:[^;]*[/+]json|application\/x-www-form-urlencoded)\s*(?:;|$)/i.test(type);

/** Fastify keeps the body on its own request, and a value that it could parse had no content coding left. */
function fastifyBody({ raw, rawBody, body }: AnyRequest): BodyRead | null {
  if (raw === undefined) return null;
  if (rawBody instanceof Uint8Array) return { kind: "bytes", bytes: rawBody, decoded: body !== undefined };
  if (body instanceof Uint8Array) return { kind: "bytes", bytes: body };
  if (typeof body === "string") return { kind: "bytes", bytes: new TextEncoder().encode(body), decoded: true };
  return body === undefined ? null : { kind: "parsed", value: body };
}

/** For `@Body()` in an application whose platform parses nothing. */
function provide(request: AnyRequest, { bytes, form }: ReadBody): void {
  if (request.body !== undefined || bytes == null || bytes.length === 0) return;
  if (form.kind === "json") request.body = JSON.parse(new TextDecoder().decode(bytes));
  else if (form.kind === "form") request.body = form.value();
}

/**
 * A gate for {@link captureNode} under which every request is recorded, those too that are answered without the method:
 * Nest writes something in any case once its interceptors are through, and that must go nowhere.
 */
function answering<Request>(gate: Gate<Request>, begin: () => void, over: () => void): Gate<Request> {
  return {
    ...gate,
    async capture(exchange, handler) {
      let ran = false;
      const run: HttpHandler = (signal, body) => {
        ran = true;
        return handler(signal, body);
      };
      const handled = await through(gate, exchange, run).finally(over);
      if (handled.kind !== "answer" || ran) return handled;
      begin();
      handler(new AbortController().signal, UNREAD).catch(() => {});
      return handled;
    },
  };
}

async function through<Request>(gate: Gate<Request>, exchange: Exchange<Request>, run: HttpHandler): Promise<Handled> {
  if (gate.operation.runKind === "capture") return gate.capture(exchange, run);
  return { kind: "answer", answer: await gate.answer(exchange) };
}

/** Stands for the body where the method is not called. */
const UNREAD = Object.freeze({}) as ReadBody;

/** What Nest takes for a value that an interceptor gives instead of the method's. */
const NOTHING = [undefined];

/**
 * Runs the gate around the rest of a Nest request. Resolves with what the interceptor gives back, before Nest has written
 * anything; rejects with an error for the exception filters. `late` is told of an error after that.
 */
export function throughGate<Request extends NestRequest>(
  gate: Gate<Request>,
  { request, response, handle }: NestCall<Request>,
  late: (error: unknown, res: ServerResponse) => void,
): Promise<unknown> {
  const reply = "raw" in response ? response : undefined;
  const res = reply?.raw ?? (response as ServerResponse);
  const raw = rawRequest(request);
  const { socket } = raw;
  return new Promise((resolve, reject) => {
    let given = false;
    const give = (value: unknown) => {
      given = true;
      resolve(value);
    };
    const next = (body?: ReadBody) => {
      if (body === UNREAD) return;
      if (body !== undefined) {
        provide(request, body);
        raw.socket = unclosed(socket);
      }
      give(handle());
    };
    const begin = () => reply !== undefined && takeOver(reply);
    // Before the answer goes out, which has to know of the client's going.
    const over = () => {
      raw.socket = socket;
    };
    const wrapped = answering(gate, begin, over);
    captureNode(wrapped, nestExchange(request, gate.operation.runKind === "capture"), res, { next, answer: () => {} })
      .then(() => given || whenSent(res, () => give(NOTHING)))
      .catch((error: unknown) => (given ? late(error, res) : reject(error)));
  });
}

/** Only then nothing that Nest writes can get into an answer that is still on its way. */
function whenSent(res: ServerResponse, sent: () => void): void {
  if (res.writableEnded || res.destroyed) sent();
  else res.once("finish", sent).once("close", sent);
}

/** Fastify gives the response away; headers that its hooks have set for this caller go with our answer. */
function takeOver(reply: FastifyReply): void {
  for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value);
  reply.hijack();
  // It would warn of a second answer, for every replay.
  reply.send = () => reply;
}

const LISTENS = new Set<unknown>(["on", "once", "addListener", "prependListener", "prependOnceListener"]);

/**
 * The request's socket as one that never closes. Nest watches it, and stops the stream or Observable that a method gave as
 * soon as the client goes away; the answer that is recorded has to become complete all the same.
 */
function unclosed(socket: Socket): Socket {
  return new Proxy(socket, {
    get(target, name, proxy) {
      if (name === "destroyed") return false;
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      if (!LISTENS.has(name)) return value.bind(target);
      return (event: string, listener: unknown) => {
        if (event !== "close") value.call(target, event, listener);
        return proxy;
      };
    },
    set: (target, name, value) => Reflect.set(target, name, value, target),
  });
}
