import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** One delivery as it arrived: the message's id and topic, and what it tells of. */
export interface Delivered {
  readonly id: string;
  readonly topic: string;
  /** Of the invoice or the charge. */
  readonly about: string;
}

/** The receiver of the example's webhooks. */
export interface Sink {
  readonly url: string;
  /** Every arrival, repetitions included. */
  readonly delivered: readonly Delivered[];
  /** How many wait for its answer at the moment. */
  open(): number;
  close(): Promise<void>;
}

/** Every answer takes so long, so that a killed relay is met with deliveries under way. */
const ANSWER_MS = 100;

/** Starts one on a free port of the loopback. */
export async function openSink(): Promise<Sink> {
  const delivered: Delivered[] = [];
  let open = 0;
  const server = createServer(async (request, response) => {
    open++;
    try {
      // Counted when it has arrived, whether or not anybody still waits for the answer.
      delivered.push(deliveryOf(request, await bodyOf(request)));
      await sleep(ANSWER_MS);
      response.writeHead(204).end();
    } catch {
      // A relay that was killed in the middle of its request.
      response.destroy();
    } finally {
      open--;
    }
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/messages`,
    delivered,
    open: () => open,
    async close() {
      const closed = new Promise((done) => server.close(done));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

interface Envelope {
  readonly type: string;
  readonly data: { readonly id?: string; readonly charge_id?: string };
}

function deliveryOf({ headers }: IncomingMessage, body: string): Delivered {
  const { type, data } = JSON.parse(body) as Envelope;
  return { id: String(headers["webhook-id"]), topic: type, about: data.id ?? data.charge_id ?? "" };
}
