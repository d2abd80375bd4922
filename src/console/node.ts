import type { IncomingMessage, ServerResponse } from "node:http";
import type { Answered, Asked } from "./exchange.ts";

/** Goes on to whatever comes after, as Express and Connect hand it over. */
export type Next = (error?: unknown) => void;

type NodeRequest = IncomingMessage & { readonly originalUrl?: unknown; readonly body?: unknown };

/** The path below the console's own and the query; `null`: it is none of the console's. */
export function pathBelow(
  target: string,
  basePath: string,
): { readonly path: string; readonly query: URLSearchParams } | null {
  const [path = "", ...query] = target.split("?");
  if (path !== basePath && !path.startsWith(`${basePath}/`)) return null;
  return { path: path.slice(basePath.length), query: new URLSearchParams(query.join("?")) };
}

/** The target as the client sent it: Express takes a mounted path away. */
export function targetOf(req: IncomingMessage): string {
  const { originalUrl, url } = req as NodeRequest;
  return typeof originalUrl === "string" ? originalUrl : (url ?? "/");
}

/** A request of `node:http` as the console reads it. */
export function nodeAsked(req: IncomingMessage, res: ServerResponse, place: Pick<Asked, "path" | "query">): Asked {
  const gone = new AbortController();
  res.once("close", () => gone.abort());
  return {
    ...place,
    method: req.method ?? "GET",
    native: req,
    secure:
      (req.socket as { encrypted?: boolean } | undefined)?.encrypted === true ||
      (req as { secure?: unknown }).secure === true,
    signal: gone.signal,
    header: (name) => headerOf(req, name),
    readBody: (limitBytes) => readBody(req as NodeRequest, limitBytes),
  };
}

function headerOf(req: IncomingMessage, name: string): string | null {
  const value = req.headers[name];
  return value === undefined ? null : String(value);
}

/** What an earlier parser has read is taken as it gave it. */
async function readBody(req: NodeRequest, limitBytes: number): Promise<Uint8Array | null> {
  if (req.body instanceof Uint8Array) return req.body;
  if (req.readableEnded && req.body !== undefined) {
    const text = typeof req.body === "string" ? req.body : JSON.stringify(req.body);
    return new TextEncoder().encode(text);
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of req as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > limitBytes) return null;
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

/** Sends an answer; of a HEAD only its head. */
export function sendAnswer(req: IncomingMessage, res: ServerResponse, asked: Asked, answered: Answered): void {
  const { status, headers, body, stream } = answered;
  for (const [name, value] of headers) res.setHeader(name, value);
  if (stream === undefined) {
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    if (status !== 204) res.setHeader("content-length", String(bytes.length));
    // A body that was not read would be taken for the next request.
    if (!req.readableEnded && req.method !== "GET" && req.method !== "HEAD") res.setHeader("connection", "close");
    res.writeHead(status);
    res.end(req.method === "HEAD" || status === 204 ? undefined : bytes);
    return;
  }
  res.writeHead(status);
  res.flushHeaders();
  stream({ write: (text) => void (res.writableEnded || res.write(text)), end: () => res.end(), signal: asked.signal });
}
