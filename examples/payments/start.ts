import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createApp, takesIdempotencyKey } from "./app.ts";
import { TOKENS } from "./auth.ts";
import { type OpenConsole, openConsole, preparePage } from "./console.ts";
import { openLab } from "./lab.ts";
import { openPayments, type Payments } from "./payments.ts";
import { readSettings, type Settings } from "./settings.ts";
import { openStack } from "./stack.ts";
import { stopRequest } from "./stop-request.ts";
import { loopsOf, startWorker, type Worker } from "./work.ts";

// npm start: a database, a payment provider, and the API in this very process. Standard output gets one line, when all
// of it is ready; everything for a person to read goes to standard error.

const GRACE_MS = 10_000;
const tell = (line: string) => console.error(line);
const stopRequested = stopRequest();

async function main(): Promise<void> {
  const settings = readSettings(process.env);
  const page = preparePage();
  const stack = await openStack(settings, tell);
  try {
    const lab = openLab(settings);
    const operators = await openConsole(settings, stack.databaseUrl);
    const payments = await openPayments({ settings, ...stack, ...lab, observe: operators.observe });
    try {
      const app = createApp(payments, lab, { profile: settings.profile, operators: operators.node });
      await page;
      const worker = settings.worker ? startWorker(loopsOf(payments, settings)) : null;
      const server = await listen(createServer(app), settings.port);
      const api = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      announce(
        { api, psp: stack.pspUrl, database: stack.databaseUrl, pid: process.pid },
        settings,
        operators,
        takesIdempotencyKey(payments.operations),
      );
      await stopRequested;
      await drain(server, worker, payments, operators);
    } finally {
      await Promise.all([payments.end(), operators.close()]);
    }
  } finally {
    await stack.stop();
  }
}

function announce(
  ready: { readonly api: string } & Record<string, unknown>,
  settings: Settings,
  { passwordFile }: OpenConsole,
  printsLines: boolean,
): void {
  console.log(`oncekey payments ready ${JSON.stringify(ready)}`);
  // Tokens stay out of everything that is printed, even those of a test.
  const tokenFile = join(settings.dataDir, "token");
  mkdirSync(settings.dataDir, { recursive: true });
  writeFileSync(tokenFile, [...TOKENS.keys()][0] ?? "", { mode: 0o600 });
  if (printsLines) tellLines(ready.api, tokenFile);
  else tell(`\nThe requests of this dialect: docs/dialects/${settings.profile}.md`);
  if (settings.lab) tell(`\nThe lab is open: ${ready.api}/lab/crash-points, ${ready.api}/lab/effects`);
  if (printsLines) tell(`\nPay in a browser: ${ready.api}/checkout`);
  tell(`\nThe console: ${ready.api}/console/ (user and password: ${passwordFile})`);
  tell("\nCtrl-C stops all of it.");
}

function tellLines(api: string, tokenFile: string): void {
  const post = (path: string, key: string, body: unknown) =>
    `  curl -sS -i -w '\\n' ${api}${path} -H "Authorization: Bearer $TOKEN" -H 'Idempotency-Key: ${key}' -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`;
  tell("\nTry it, each line twice (the second answer is the first one, replayed):\n");
  tell(`  export TOKEN="$(cat '${tokenFile}')"`);
  tell(post("/v1/invoices", "first-invoice", { customer_id: "cus_1", amount_minor: 1999, currency: "EUR" }));
  tell(post("/v1/charges", "first-charge", { amount_minor: 1999, currency: "EUR", source: "tok_visa" }));
  tell(post("/v1/charges", "first-decline", { amount_minor: 1999, currency: "EUR", source: "tok_declined" }));
}

function listen(server: Server, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => {
      reject(new Error(`The API cannot listen on 127.0.0.1:${port}. Set PORT to a free port, or to 0.`, { cause }));
    });
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}

/** Takes nothing new, lets what runs finish, sends its answers. */
async function drain(
  server: Server,
  worker: Worker | null,
  { once }: Payments,
  { endStreams }: OpenConsole,
): Promise<void> {
  endStreams();
  const closed = new Promise((resolve) => server.close(resolve));
  await Promise.all([worker?.stop(), once.close({ graceMs: GRACE_MS })]);
  await Promise.race([closed, sleep(1_000)]);
  server.closeAllConnections();
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    tell(error instanceof Error ? error.message : String(error));
    process.exit(1);
  },
);
