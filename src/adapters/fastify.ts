import { Readable } from "node:stream";
import type { Operation } from "../engine/operation.ts";
import type { BindingOptions } from "../http/binding.ts";
import type { BodyRead } from "../http/exchange.ts";
import { bind, type Gate } from "../http/gate.ts";
import { type FastifyReply, type FastifyRequest, failFastify, fastifyExchange, sendFastify } from "./_fastify.ts";
import { captureNode, readPayload } from "./_node.ts";

type PayloadDone = (error?: Error | null, payload?: Readable) => void;

/** Reads the exact bytes before Fastify parses them. */
export interface FastifyReading<Request> {
  preParsing(request: Request, reply: unknown, payload: Readable, done: PayloadDone): void;
}

/** Route options that answer by themselves: `app.post(path, idempotent(operation, options))`. */
export interface AnsweringRoute<Request> extends FastifyReading<Request> {
  handler(request: Request, reply: FastifyReply): Promise<unknown>;
}

/** Route options around an existing handler: `app.post(path, idempotent(operation, options), handler)`. */
export interface CapturingRoute<Request> extends FastifyReading<Request> {
  preHandler(request: Request, reply: FastifyReply, done: (error?: Error) => void): void;
}

/**
 * Route options that bind an operation to a Fastify 5 route; spread them to add others (`schema`, `onRequest`). Hooks
 * that authenticate come before: `onRequest`, or `preHandler` of the instance. Behind a `transaction` or `phases`
 * operation Fastify parses no body (the operation's own schemas validate); a captured handler gets `request.body` as
 * ever. Raises what `bind` raises; errors reach the route's error handler.
 */
export function idempotent<Request extends FastifyRequest>(
  operation: Operation<"capture">,
  options: BindingOptions<Request>,
): CapturingRoute<NoInfer<Request>>;
export function idempotent<Request extends FastifyRequest>(
  operation: Operation<"transaction"> | Operation<"phases">,
  options: BindingOptions<Request>,
): AnsweringRoute<NoInfer<Request>>;
export function idempotent<Request extends FastifyRequest>(
  operation: Operation,
  options: BindingOptions<Request>,
): AnsweringRoute<Request> | CapturingRoute<Request> {
  const gate = bind(operation, options);
  const bodies = new WeakMap<FastifyRequest, BodyRead>();
  const preParsing = bodyReader(gate, bodies);
  if (operation.runKind !== "capture") {
    const handler = async (request: Request, reply: FastifyReply) =>
      sendFastify(reply, await gate.answer(fastifyExchange(request, bodies)));
    return { preParsing, handler };
  }
  const preHandler = (request: Request, reply: FastifyReply, done: (error?: Error) => void) => {
    const exchange = fastifyExchange(request, bodies);
    captureNode(gate, exchange, reply.raw, {
      next: () => done(),
      answer: (answer) => void sendFastify(reply, answer),
    }).catch((error: Error) => failFastify(reply, error, done));
  };
  return { preParsing, preHandler };
}

// What hides a body from Fastify's own parsers, by its public setter for headers: they would refuse it in words of their
// own, lose digits, or not know its type.
const HIDDEN = { "content-type": undefined, "content-length": undefined, "transfer-encoding": undefined };

function bodyReader<Request extends FastifyRequest>(gate: Gate<Request>, bodies: WeakMap<FastifyRequest, BodyRead>) {
  const { operation, rules } = gate;
  return (request: Request, _reply: unknown, payload: Readable, done: PayloadDone): void => {
    readPayload(request.raw, payload, rules.limitBytes).then((body) => {
      bodies.set(request, body);
      const shown = operation.runKind === "capture" && body.kind === "bytes" ? body.bytes : null;
      if (shown === null) request.headers = { ...request.headers, ...HIDDEN };
      done(null, Readable.from(shown === null ? [] : [shown]));
    }, done);
  };
}
