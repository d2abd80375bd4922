import type { IncomingMessage, ServerResponse } from "node:http";
import type { Operation } from "../engine/operation.ts";
import type { BindingOptions } from "../http/binding.ts";
import { bind } from "../http/gate.ts";
import { writeNodeAnswer } from "../http/node-response.ts";
import { endFailed, nodeExchange } from "./_listener.ts";
import { captureNode } from "./_node.ts";

/** A binding without a framework: nobody else finds parameters or takes errors. */
export interface NodeBindingOptions<Request> extends BindingOptions<Request> {
  /** Parameters of the matched route, where a router found some. Default: none. */
  params?(request: Request): Readonly<Record<string, string>>;
  /**
   * Told of what the operation or the handler threw, and of errors meant for developers; the client gets an empty 500, or
   * a cut connection where a part of the answer was sent. Default: the instance's `onError`.
   */
  onError?(error: unknown, request: Request): void;
}

/** A listener of `node:http` around which a `capture` operation is put. It may read the request's stream. */
export type NodeHandler<Request> = (req: Request, res: ServerResponse) => unknown;

/** Answers a request of `node:http`; to be given to `createServer`, or called by a router. */
export type NodeListener<Request> = (req: Request, res: ServerResponse) => void;

/**
 * Binds an operation to plain `node:http`. The target is the whole original URL (`originalUrl` where a router keeps it).
 * Raises what `bind` raises; errors of a request go to `onError`.
 */
export function idempotent<Request extends IncomingMessage>(
  operation: Operation<"transaction"> | Operation<"phases">,
  options: NodeBindingOptions<Request>,
): NodeListener<Request>;
/** Wraps an existing listener with a `capture` operation. */
export function idempotent<Request extends IncomingMessage>(
  operation: Operation<"capture">,
  options: NodeBindingOptions<Request>,
  handler: NodeHandler<NoInfer<Request>>,
): NodeListener<Request>;
export function idempotent<Request extends IncomingMessage>(
  operation: Operation,
  options: NodeBindingOptions<Request>,
  handler?: NodeHandler<Request>,
): NodeListener<Request> {
  const gate = bind(operation, options);
  const { name, engine } = operation;
  const tell =
    options.onError ?? ((error: unknown) => engine.settings.onError(error, { operation: name, at: "request" }));
  return (req, res) => {
    const fail = (error: unknown) => {
      endFailed(res);
      tell(error, req);
    };
    const exchange = nodeExchange(req, options);
    const answered =
      handler === undefined
        ? gate.answer(exchange).then((answer) => writeNodeAnswer(res, answer))
        : captureNode(gate, exchange, res, {
            next: () => void run(handler, req, res).catch(fail),
            answer: (answer) => writeNodeAnswer(res, answer),
          });
    answered.catch(fail);
  };
}

async function run<Request>(handler: NodeHandler<Request>, req: Request, res: ServerResponse): Promise<void> {
  await handler(req, res);
}
