/** The consumer, in a process and a database of its own: takes messages in by the inbox, one effect each. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createOncekey } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import pg from "pg";
import type { LabPayload, SinkSettings } from "./outbox-world.ts";

interface Arrived {
  readonly id: string;
  readonly orderBy: string | null;
  readonly tenant: string;
  readonly payload: string;
}

const settings = JSON.parse(process.env.LAB_SETTINGS ?? "{}") as SinkSettings;
const pool = new pg.Pool({ connectionString: settings.url, max: 30 });
pool.on("error", () => {});
const once = createOncekey({ store: postgresStore(fromPg(pool)), onError: () => {} });
await once.start();
let effects = 0;

const isPoison = ({ orderBy }: Arrived, { place }: LabPayload) => orderBy === settings.poisonedOrder && place === 0;

async function takeIn(arrived: Arrived): Promise<number> {
  const payload = JSON.parse(arrived.payload) as LabPayload;
  // Every arrival counts, also those that are refused or come again: the checks look for ids that changed.
  const arrival = "INSERT INTO arrival (id, n, rolled_back) VALUES ($1, $2, $3)";
  await pool.query(arrival, [arrived.id, payload.n, payload.rolledBack]);
  if (isPoison(arrived, payload)) return 422;
  const result = await once.consume({ tenant: arrived.tenant, source: "lab", id: arrived.id }, async ({ tx }) => {
    await sleep(Math.random() * settings.slowMs);
    const effect = "INSERT INTO effect (id, n, order_by, place) VALUES ($1, $2, $3, $4)";
    await tx.query(effect, [arrived.id, payload.n, arrived.orderBy, payload.place]);
  });
  if (result.kind === "unsettled") return 503;
  if (result.kind === "done") process.send?.({ effects: ++effects });
  return 204;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    response.writeHead(await takeIn(JSON.parse(await bodyOf(request)) as Arrived)).end();
  } catch (error) {
    // A relay that was killed in the middle of its request: nobody is there to be answered.
    if (request.destroyed && !request.complete) return;
    process.stderr.write(`sink: ${String(error)}\n`);
    response.writeHead(500).end();
  }
}

const server = createServer((request, response) => void answer(request, response));
server.listen(0, "127.0.0.1", () => {
  process.send?.({ ready: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
