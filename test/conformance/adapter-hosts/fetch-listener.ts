import type { IncomingMessage, RequestListener } from "node:http";
import { Readable } from "node:stream";

/** Serves a function of the Fetch interface on Node, header lines and bytes as they are. A rejection becomes a 500. */
export function fetchListener(handle: (request: Request) => Promise<Response>): RequestListener {
  return async (req, res) => {
    const response = await answerOf(req, handle).catch(() => new Response("broken", { status: 500 }));
    res.statusCode = response.status;
    for (const [name, value] of response.headers) res.appendHeader(name, value);
    res.end(Buffer.from(await response.arrayBuffer()));
  };
}

async function answerOf(req: IncomingMessage, handle: (request: Request) => Promise<Response>): Promise<Response> {
  const headers = new Headers();
  for (let at = 0; at < req.rawHeaders.length; at += 2) {
    headers.append(req.rawHeaders[at] as string, req.rawHeaders[at + 1] as string);
  }
  const init = { method: req.method ?? "GET", headers, body: Readable.toWeb(req), duplex: "half" };
  return handle(new Request(`http://127.0.0.1${req.url}`, init as RequestInit));
}
