import type { IncomingMessage, ServerResponse } from "node:http";
import type { Operation } from "../engine/operation.ts";
import type { BindingOptions } from "../http/binding.ts";
import type { ReadBody } from "../http/body.ts";
import type { Exchange } from "../http/exchange.ts";
import { bind } from "../http/gate.ts";
import { writeNodeAnswer } from "../http/node-response.ts";
import { captureNode, type EarlierBody, nodeHeaderLines, readNodeBody } from "./_node.ts";

/** What is used of an Express request (4 and 5). */
export interface ExpressRequest extends IncomingMessage, EarlierBody {
  readonly originalUrl: string;
  readonly params: Readonly<Record<string, string | string[]>>;
  body?: unknown;
}

/** Passes a request on, or an error to Express's own error handling. */
export type ExpressNext = (error?: unknown) => void;

/**
 * Binds an operation to an Express route: `app.post(path, authenticate, idempotent(operation, options))`. A `capture`
 * operation wraps the handlers that come after it. Mount it before body parsers where numbers beyond 2^53 or files
 * matter; JSON and form bodies that it reads itself are left in `req.body` and later parsers skip them.
 * Raises what `bind` raises. Errors of a request go to `next(error)`, once.
 */
export function idempotent<Request extends ExpressRequest>(
  operation: Operation,
  options: BindingOptions<Request>,
): (req: Request, res: ServerResponse, next: ExpressNext) => void {
  const gate = bind(operation, options);
  const captures = operation.runKind === "capture";
  return (req, res, next) => {
    const exchange = expressExchange(req, captures);
    const answered = captures
      ? captureNode(gate, exchange, res, {
          next: (body) => {
            provide(req, body);
            next();
          },
          answer: (answer) => writeNodeAnswer(res, answer),
        })
      : gate.answer(exchange).then((answer) => writeNodeAnswer(res, answer));
    answered.catch(next);
  };
}

function expressExchange<Request extends ExpressRequest>(req: Request, captures: boolean): Exchange<Request> {
  const params = Object.entries(req.params).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join("/") : value,
  ]);
  // Files and other bodies that are not put into req.body stay readable for the parser that comes after a capture.
  const keepStream =
    captures &&
    !/^\s*(?:[^;]*[/+]json|application\/x-www-form-urlencoded)\s*(?:;|$)/i.test(req.headers["content-type"] ?? "");
  return {
    native: req,
    method: req.method ?? "GET",
    target: req.originalUrl,
    params: Object.fromEntries(params),
    headerLines: (name) => nodeHeaderLines(req, name),
    readBody: (limitBytes) => readNodeBody(req, limitBytes, keepStream),
  };
}

function provide(req: ExpressRequest & { _body?: boolean }, body: ReadBody | undefined): void {
  if (body?.bytes == null || body.bytes.length === 0 || req._body === true || req.rawBody instanceof Uint8Array) return;
  if (body.form.kind === "json") req.body = JSON.parse(new TextDecoder().decode(body.bytes));
  else if (body.form.kind === "form") req.body = body.form.value();
  else return;
  // What body-parser looks at before it would wait for a stream that has been read.
  req._body = true;
}
