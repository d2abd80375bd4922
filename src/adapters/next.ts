import type { Operation } from "../engine/operation.ts";
import type { BindingOptions } from "../http/binding.ts";
import type { Exchange } from "../http/exchange.ts";
import { bind } from "../http/gate.ts";
import { readUnread } from "./_unread.ts";
import { answerResponse, captureWeb, targetOf, webHeaderLines } from "./_web.ts";

/** What Next.js hands to a route handler beside its request. */
export interface RouteContext {
  readonly params: Promise<Readonly<Record<string, string | string[] | undefined>>>;
}

/**
 * Binds an operation to a route handler of Next.js (App Router): `export const POST = idempotent(operation, options)`.
 * Raises what `bind` raises; what the operation threw reaches Next's own error handling.
 */
export function idempotent<Native extends Request = Request>(
  operation: Operation<"transaction"> | Operation<"phases">,
  options: BindingOptions<Native>,
): (request: Native, context: RouteContext) => Promise<Response>;
/** Wraps an existing route handler with a `capture` operation; it gets Next's own request and context. */
export function idempotent<Native extends Request, Context extends RouteContext>(
  operation: Operation<"capture">,
  options: BindingOptions<NoInfer<Native>>,
  handler: (request: Native, context: Context) => Response | Promise<Response>,
): (request: Native, context: Context) => Promise<Response>;
export function idempotent<Native extends Request>(
  operation: Operation,
  options: BindingOptions<Native>,
  handler?: (request: Native, context: never) => Response | Promise<Response>,
): (request: Native, context: RouteContext) => Promise<Response> {
  const gate = bind(operation, options);
  return async (request, context) => {
    const exchange = await nextExchange(request, context);
    if (handler === undefined) return answerResponse(await gate.answer(exchange));
    const existing = async () => handler(request, context as never);
    const captured = await captureWeb(gate, exchange, () => existing().catch(thrownAnswer));
    if (captured.kind === "pass") return existing();
    return captured.kind === "own" ? captured.response : answerResponse(captured.answer);
  };
}

async function nextExchange<Native extends Request>(request: Native, context: RouteContext): Promise<Exchange<Native>> {
  // Next gives a route without parameters no promise at all.
  const params = Object.entries((await context?.params) ?? {});
  return {
    native: request,
    method: request.method,
    target: targetOf(request.url),
    params: Object.fromEntries(params.map(([name, value]) => [name, [value ?? []].flat().join("/")])),
    headerLines: (name) => webHeaderLines(request.headers, name),
    readBody: (limitBytes) => readUnread(request, limitBytes),
  };
}

/**
 * `redirect()`, `notFound()` and their like in `next/navigation` answer by a throw whose digest Next turns into this very
 * response. Left alone it would count as a handler that broke, and the key would need recovery.
 */
function thrownAnswer(error: unknown): Response {
  const { digest } = (error ?? {}) as { readonly digest?: unknown };
  const parts = typeof digest === "string" ? digest.split(";") : [];
  if (parts[0] === "NEXT_HTTP_ERROR_FALLBACK") return new Response(null, { status: Number(parts[1]) });
  if (parts[0] !== "NEXT_REDIRECT") throw error;
  // The address may hold the separator.
  return new Response(null, { status: Number(parts.at(-2)), headers: { location: parts.slice(2, -2).join(";") } });
}
