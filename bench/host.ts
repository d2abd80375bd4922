import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";

/** The path that every variant serves. */
export const PATH = "/v1/invoices";

/** Reads a request's body to its end. */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Answers with JSON that was made already. */
export function sendJson(response: ServerResponse, status: number, body: string | Uint8Array): void {
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
  response.end(body);
}

/** A listener without a framework, written by hand: an error becomes an empty 500, which the clients count as wrong. */
export function listenerOf(
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): RequestListener {
  return (request, response) => {
    handle(request, response).catch((error: unknown) => {
      process.stderr.write(`bench: ${error}\n`);
      response.writeHead(500, { "content-length": 0 }).end();
    });
  };
}
