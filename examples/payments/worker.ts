import { worker } from "./service.ts";
import { stopRequest } from "./stop-request.ts";
import { startWorker } from "./work.ts";

// npm run worker: the background work in a process of its own, beside APIs that run with ONCEKEY_WORKER=0. A service of
// yours runs `oncekey worker` on a module such as service.ts; this one has a ready line of its own, as the API has.

const stopRequested = stopRequest();

async function main(): Promise<void> {
  const { once, database, close, ...loops } = await worker();
  const running = startWorker(loops);
  console.log(`oncekey payments worker ready ${JSON.stringify({ database, pid: process.pid })}`);
  await stopRequested;
  await Promise.all([running.stop(), once.close()]);
  await close();
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(1);
  },
);
