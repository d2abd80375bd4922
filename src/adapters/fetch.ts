import { OncekeyError } from "../core/errors.ts";
import type { Operation } from "../engine/operation.ts";
import type { BindingOptions } from "../http/binding.ts";
import type { Exchange } from "../http/exchange.ts";
import { bind } from "../http/gate.ts";
import { answerResponse, captureWeb, readWebBody, requestAgain, targetOf, webHeaderLines } from "./_web.ts";

/** A binding without a router. */
export interface FetchBindingOptions extends BindingOptions<Request> {
  /** Parameters of the matched route, where a router found some. Default: none. */
  params?(request: Request): Readonly<Record<string, string>>;
}

/** Answers a `Request` with a `Response`. What else a host hands over (environment, context) goes to the handler. */
export type FetchHandler<Rest extends unknown[]> = (request: Request, ...rest: Rest) => Response | Promise<Response>;

/**
 * Binds an operation to the Fetch interface: the result answers a `Request`. Raises what `bind` raises; the returned
 * function rejects with what the operation threw.
 */
export function idempotent(
  operation: Operation<"transaction"> | Operation<"phases">,
  options: FetchBindingOptions,
): (request: Request) => Promise<Response>;
/** Wraps an existing handler with a `capture` operation. */
export function idempotent<Rest extends unknown[]>(
  operation: Operation<"capture">,
  options: FetchBindingOptions,
  handler: FetchHandler<Rest>,
): (request: Request, ...rest: Rest) => Promise<Response>;
export function idempotent(
  operation: Operation,
  options: FetchBindingOptions,
  handler?: FetchHandler<unknown[]>,
): (request: Request, ...rest: unknown[]) => Promise<Response> {
  const gate = bind(operation, options);
  if (handler === undefined)
    return async (request) => answerResponse(await gate.answer(fetchExchange(request, options)));
  return async (request, ...rest) => {
    const captured = await captureWeb(gate, fetchExchange(request, options), async (body) =>
      handler(requestAgain(request, body), ...rest),
    );
    if (captured.kind === "pass") return handler(request, ...rest);
    return captured.kind === "own" ? captured.response : answerResponse(captured.answer);
  };
}

function fetchExchange(request: Request, options: FetchBindingOptions): Exchange<Request> {
  return {
    native: request,
    method: request.method,
    target: targetOf(request.url),
    params: options.params?.(request) ?? {},
    headerLines: (name) => webHeaderLines(request.headers, name),
    readBody: async (limitBytes) => {
      if (!request.bodyUsed) return readWebBody(request, limitBytes);
      throw new OncekeyError(
        "oncekey_body_consumed",
        "The request body was read before Oncekey, so the request cannot be compared. Nothing was run or stored. Call idempotent() first, or read a clone.",
      );
    },
  };
}
