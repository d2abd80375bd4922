import { openLab } from "./lab.ts";
import { openPayments } from "./payments.ts";
import { readSettings } from "./settings.ts";
import { findStack } from "./stack.ts";
import { stopRequest } from "./stop-request.ts";
import { startWorker } from "./work.ts";

// npm run worker: the background work in a process of its own, beside APIs that run with ONCEKEY_WORKER=0. It needs the
// database and the provider of an API on the same data directory, or DATABASE_URL and PSP_URL.

const stopRequested = stopRequest();

async function main(): Promise<void> {
  const settings = readSettings(process.env);
  const stack = await findStack(settings, (line) => console.error(line));
  const payments = await openPayments({ settings, ...stack, ...openLab({ ...settings, lab: false }) });
  const worker = startWorker(payments);
  console.log(`oncekey payments worker ready ${JSON.stringify({ database: stack.databaseUrl, pid: process.pid })}`);
  await stopRequested;
  await worker.stop();
  await payments.once.close();
  await payments.end();
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(1);
  },
);
