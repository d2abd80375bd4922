import type { IncomingMessage, ServerResponse } from "node:http";
import type { Exchange } from "../http/exchange.ts";
import { writeNodeAnswer } from "../http/node-response.ts";
import { nodeHeaderLines, readNodeBody } from "./_node.ts";

/** What a framework's last error handler does: nothing of the error reaches the client. */
export function endFailed(res: ServerResponse): void {
  if (res.writableEnded) return;
  if (res.headersSent) res.destroy();
  else writeNodeAnswer(res, { status: 500, headers: [["content-length", "0"]], body: new Uint8Array() });
}

/** A request of `node:http`. */
export function nodeExchange<Request extends IncomingMessage>(
  req: Request & { readonly originalUrl?: unknown },
  options: { params?(request: Request): Readonly<Record<string, string>> },
): Exchange<Request> {
  return {
    native: req,
    method: req.method ?? "GET",
    target: typeof req.originalUrl === "string" ? req.originalUrl : (req.url ?? "/"),
    params: options.params?.(req) ?? {},
    headerLines: (name) => nodeHeaderLines(req, name),
    // The handler reads the stream by itself, so the bytes are put back.
    readBody: (limitBytes) => readNodeBody(req, limitBytes, true),
  };
}
