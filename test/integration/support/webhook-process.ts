/** A process with one webhook endpoint that kills itself at a given place. Started by webhook-postgres.test.ts. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fromPg } from "oncekey/drivers/pg";
import pg from "pg";
import { invoiceWebhook } from "./webhook-endpoint.ts";

/** Where the process dies: in the transaction, or when it is committed and the provider has no answer yet. */
export type DieAt = "in_handler" | "before_answer";

const { url, dieAt } = JSON.parse(process.env.WEBHOOK_SETTINGS ?? "{}") as { url: string; dieAt: DieAt };
const die = (at: DieAt) => at === dieAt && process.kill(process.pid, "SIGKILL");

const webhook = await invoiceWebhook(fromPg(new pg.Pool({ connectionString: url, max: 2 })), async () => {
  die("in_handler");
});
const server = createServer(async (req, res) => {
  const chunks: Uint8Array[] = [];
  for await (const chunk of req as AsyncIterable<Uint8Array>) chunks.push(chunk);
  const { status } = await webhook.receive({ tenant: "acme", headers: req.headers, body: Buffer.concat(chunks) });
  die("before_answer");
  res.writeHead(status).end();
});
server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
