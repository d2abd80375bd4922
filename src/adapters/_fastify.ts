import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { OncekeyError } from "../core/errors.ts";
import { isInMemory } from "../core/outcome.ts";
import { readableOf } from "../http/answer-body.ts";
import type { Answer, BodyRead, Exchange } from "../http/exchange.ts";
import { OF_A_REPRESENTATION, writeNodeAnswer } from "../http/node-response.ts";
import { nodeHeaderLines } from "./_node.ts";

/** What is used of a Fastify 5 request. */
export interface FastifyRequest {
  readonly raw: IncomingMessage;
  readonly method: string;
  readonly originalUrl: string;
  readonly params: unknown;
  headers: object;
}

/** What is used of a Fastify 5 reply. */
export interface FastifyReply {
  readonly raw: ServerResponse;
  readonly sent: boolean;
  code(status: number): unknown;
  header(name: string, value: unknown): unknown;
  removeHeader(name: string): unknown;
  send(payload?: unknown): unknown;
}

/** A Fastify request whose body was read before parsing. Shows its headers again, which were hidden from the parsers. */
export function fastifyExchange<Request extends FastifyRequest>(
  request: Request,
  bodies: WeakMap<FastifyRequest, BodyRead>,
): Exchange<Request> {
  request.headers = request.raw.headers;
  const params = Object.entries((request.params ?? {}) as Record<string, string>);
  return {
    native: request,
    method: request.method,
    target: request.originalUrl,
    params: Object.fromEntries(params),
    headerLines: (name) => nodeHeaderLines(request.raw, name),
    readBody: async () => {
      const body = bodies.get(request);
      if (body !== undefined) return body;
      throw new OncekeyError(
        "oncekey_body_consumed",
        "The route's preParsing hook was replaced, so the request body was never read and cannot be compared. Nothing was run or stored. Call both hooks, or mount yours on the instance.",
      );
    },
  };
}

/** Sends an answer through Fastify, so that its hooks see it and headers set for this caller (CORS) go with it. */
export function sendFastify(reply: FastifyReply, { status, headers, body }: Answer): unknown {
  reply.code(status);
  for (const name of OF_A_REPRESENTATION) reply.removeHeader(name);
  for (const name of new Set(headers.map(([name]) => name))) {
    const values = headers.filter(([other]) => other === name).map(([, value]) => value);
    reply.header(name, values.length === 1 ? values[0] : values);
  }
  if (body.length === 0) return reply.send();
  if (!isInMemory(body)) return reply.send(readableOf(body));
  // Fastify would name the type of bytes that have none; of a stream it names nothing.
  const typed = headers.some(([name]) => name === "content-type");
  return reply.send(typed ? Buffer.from(body) : Readable.from([Buffer.from(body)]));
}

/**
 * Hands an error to Fastify's error handling. A handler that took the response away from Fastify (`hijack`, as event
 * streams need) leaves only the bare one, which then gets an empty 500.
 */
export function failFastify(reply: FastifyReply, error: Error, done: (error: Error) => void): void {
  if (!reply.sent) done(error);
  else writeNodeAnswer(reply.raw, { status: 500, headers: [["content-length", "0"]], body: new Uint8Array() });
}
