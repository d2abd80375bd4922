import type { Operation } from "../engine/operation.ts";
import type { BindingOptions } from "../http/binding.ts";
import type { Answer, Exchange } from "../http/exchange.ts";
import { bind, type Gate } from "../http/gate.ts";
import {
  answerResponse,
  cachedBody,
  captureWeb,
  readWebBody,
  requestAgain,
  targetOf,
  valuesByName,
  webBody,
  webHeaderLines,
} from "./_web.ts";

/** What is used of a Hono context. */
export interface HonoContext {
  readonly req: {
    raw: Request;
    readonly method: string;
    readonly url: string;
    readonly bodyCache: object;
    param(): Record<string, string>;
  };
  readonly finalized: boolean;
  get res(): Response;
  set res(response: Response | undefined);
  newResponse(body: unknown, status: never, headers: Record<string, string | string[]>): Response;
}

/**
 * Binds an operation to a Hono route: `app.post(path, authenticate, idempotent(operation, options))`. A `capture`
 * operation wraps the handlers that come after it. Raises what `bind` raises; errors reach `app.onError`.
 */
export function idempotent<Context extends HonoContext>(
  operation: Operation,
  options: BindingOptions<Context>,
): (context: Context, next: () => Promise<void>) => Promise<Response | undefined> {
  const gate = bind(operation, options);
  return async (context, next) => {
    if (operation.runKind === "capture") return captureHono(gate, context, next);
    return respond(context, await gate.answer(honoExchange(context)));
  };
}

async function captureHono<Context extends HonoContext>(
  gate: Gate<Context>,
  context: Context,
  next: () => Promise<void>,
): Promise<Response | undefined> {
  const captured = await captureWeb(gate, honoExchange(context), async (body) => {
    if (body.wire !== null && context.req.raw.bodyUsed) context.req.raw = requestAgain(context.req.raw, body);
    await next();
    return context.res;
  });
  if (captured.kind === "pass") return void (await next());
  if (!context.finalized && captured.kind === "answer") return respond(context, captured.answer);
  // Hono adds the headers of the response before to one that replaces it, unless that one is taken away first.
  context.res = undefined;
  context.res = captured.kind === "own" ? captured.response : answerResponse(captured.answer);
  return undefined;
}

// Through the context, which adds the headers that middleware set for this caller.
function respond(context: HonoContext, answer: Answer): Response {
  return context.newResponse(webBody(answer.body), answer.status as never, valuesByName(answer));
}

function honoExchange<Context extends HonoContext>(context: Context): Exchange<Context> {
  const { req } = context;
  return {
    native: context,
    method: req.method,
    target: targetOf(req.url),
    params: req.param(),
    headerLines: (name) => webHeaderLines(req.raw.headers, name),
    readBody: (limitBytes) => (req.raw.bodyUsed ? cachedBody(req.bodyCache) : readWebBody(req.raw, limitBytes)),
  };
}
