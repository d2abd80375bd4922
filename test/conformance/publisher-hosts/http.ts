import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { dead, delivered, type OutboxMessage, type Publisher, retry } from "oncekey/outbox";
import { webhookPublisher } from "oncekey/publishers/webhook";
import type { ArrivedMessage, PublisherHarness } from "oncekey/testing";
import { arrivedFrom, behindProxy } from "./outage.ts";

const MAX_BYTES = 65_536;
const SECRET = `whsec_${Buffer.from("a secret of thirty-two bytes....").toString("base64")}`;

/** A receiver of its own, and a publisher that is told its URL. */
async function httpHarness(make: (url: string) => Publisher): Promise<PublisherHarness> {
  const arrived: ArrivedMessage[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request).catch(() => null);
    if (body === null) return;
    if (body.length > MAX_BYTES) return void response.writeHead(413).end();
    arrived.push(arrivedOf(request, body));
    response.writeHead(204).end();
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The receiver has no port.");
  const { proxy, outage } = await behindProxy(address.port);
  return {
    publisher: make(`http://127.0.0.1:${proxy.port}/hooks/hush-hush`),
    ...outage,
    arrived: async () => arrived,
    tooLarge: MAX_BYTES + 1,
    secrets: ["hush-hush", SECRET],
    async close() {
      await proxy.close();
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

function arrivedOf({ headers }: IncomingMessage, body: string): ArrivedMessage {
  const header = (name: string) => headers[name]?.toString();
  return { ...arrivedFrom(header, body), id: header("webhook-id") ?? "" };
}

/** What the receiver wants to know beside the payload. */
function described({ topic, tenant, correlation }: OutboxMessage): Record<string, string> {
  return {
    "oncekey-topic": encodeURIComponent(topic),
    "oncekey-tenant": encodeURIComponent(tenant),
    ...(correlation === null ? {} : { [correlation.startsWith("00-") ? "traceparent" : "x-request-id"]: correlation }),
  };
}

/** The publisher for webhooks, with the payload as the body. */
export function webhookHarness(): Promise<PublisherHarness> {
  return httpHarness((url) =>
    webhookPublisher({
      endpoint: (message) => ({ url, secrets: [SECRET], headers: described(message) }),
      body: "payload",
    }),
  );
}

/** A publisher that is a function of somebody's own. */
export function functionHarness(): Promise<PublisherHarness> {
  return httpHarness((url) => ({
    name: "own",
    async publish(message, signal) {
      const headers = { ...described(message), "webhook-id": message.id };
      try {
        const answer = await fetch(url, { method: "POST", headers, body: message.payload, signal });
        if (answer.status === 413) return dead("It is too large.");
        return answer.ok ? delivered() : retry(`It answered ${answer.status}.`);
      } catch {
        return retry("It did not answer.");
      }
    },
  }));
}
