import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll } from "vitest";

/** One request, as it came. */
export interface ReceivedWebhook {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A real HTTP server on loopback that keeps what it receives and answers as it is told. */
export interface WebhookReceiver {
  readonly url: string;
  readonly received: ReceivedWebhook[];
  answer: (response: ServerResponse, request: ReceivedWebhook) => void;
}

/** Starts a receiver that answers 204; it is closed at the end of the test file. */
export async function startReceiver(): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = [];
  const receiver = {
    url: "",
    received,
    answer: (response: ServerResponse, _request: ReceivedWebhook) => void response.writeHead(204).end(),
  };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const one = {
      path: request.url ?? "",
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
    };
    received.push(one);
    receiver.answer(response, one);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`;
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return receiver;
}
