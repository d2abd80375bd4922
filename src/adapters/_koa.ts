import type { IncomingMessage, ServerResponse } from "node:http";
import { isInMemory, letGo } from "../core/outcome.ts";
import { readableOf } from "../http/answer-body.ts";
import type { Answer, BodyRead, Exchange } from "../http/exchange.ts";
import { OF_A_REPRESENTATION, writeNodeAnswer } from "../http/node-response.ts";
import { nodeHeaderLines, readNodeBody } from "./_node.ts";

/** What is used of a Koa context (2 and 3). */
export interface KoaContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** A body parser before us leaves `body` here, and its text in `rawBody`. */
  readonly request: object;
  readonly originalUrl: string;
  readonly method: string;
  status: number;
  body: unknown;
  set(name: string, value: string | string[]): void;
  append(name: string, value: string | string[]): void;
  remove(name: string): void;
  onerror(error: Error): void;
}

/** A Koa request. The target is the original URL, which routers and mounted apps leave alone. */
export function koaExchange<Context extends KoaContext>(context: Context): Exchange<Context> {
  const { req, method, originalUrl, params } = context as KoaContext & { readonly params?: Record<string, string> };
  return {
    native: context,
    method,
    target: originalUrl,
    params: Object.fromEntries(Object.entries(params ?? {}).filter(([, value]) => value !== undefined)),
    headerLines: (name) => nodeHeaderLines(req, name),
    // A parser that comes later finds the stream as it was.
    readBody: async (limitBytes) => parsedBefore(context) ?? readNodeBody(req, limitBytes, true),
  };
}

function parsedBefore({ req, request }: KoaContext): BodyRead | null {
  const { body, rawBody } = request as { readonly body?: unknown; readonly rawBody?: unknown };
  if (!req.readableDidRead && !req.readableEnded) return null;
  const exact = [rawBody, body].find((given) => typeof given === "string" || given instanceof Uint8Array);
  if (exact !== undefined) return { kind: "bytes", bytes: Buffer.from(exact as string | Uint8Array), decoded: true };
  return body === undefined ? null : { kind: "parsed", value: body };
}

/** Headers that earlier middleware may have set for this caller, and that an answer of ours adds to. */
const ADDED = new Set(["set-cookie", "vary"]);

/** Leaves an answer to Koa, which writes it when all middleware is through: compression and headers of theirs apply. */
export function giveKoa(context: KoaContext, { status, headers, body }: Answer): void {
  context.status = status;
  context.body = isInMemory(body) ? Buffer.from(body) : readableOf(body);
  // Koa names a type for bytes that have none.
  for (const name of OF_A_REPRESENTATION) context.remove(name);
  for (const name of new Set(headers.map(([name]) => name))) {
    const values = headers.filter(([other]) => other === name).map(([, value]) => value);
    if (ADDED.has(name)) context.append(name, values);
    else context.set(name, values.length === 1 ? String(values[0]) : values);
  }
}

/**
 * Writes an answer as it is when all middleware is through, whatever that made of `ctx.body`: a captured answer was stored
 * as it left the outermost middleware, and one that wraps bodies would wrap a replay once more. Headers of theirs go with it.
 */
export function pinKoa(context: KoaContext, answer: Answer): void {
  const { res } = context;
  let written = false;
  context.status = answer.status;
  // An error of outer middleware is answered by Koa without asking; nobody reads the body then.
  res.once("close", () => {
    if (!written) void letGo(answer.body);
  });
  const write = () => {
    if (written || res.headersSent) return;
    written = true;
    context.status = answer.status;
    writeNodeAnswer(res, answer);
  };
  // Koa asks for `respond` last of all, before it writes.
  Object.defineProperty(context, "respond", {
    configurable: true,
    get: () => {
      write();
      return false;
    },
    set: () => {},
  });
}
