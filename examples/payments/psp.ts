import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { claimOwnership, publishJson } from "./ownership.ts";
import { ownMark } from "./processes.ts";
import { openLedger } from "./psp/ledger.ts";
import { createProvider } from "./psp/provider.ts";
import { createPspServer } from "./psp/server.ts";

// The payment provider, simulated: a process of its own, as far away from the API as a real one. `PSP_PORT` (default
// 4001, 0: any free one), `PSP_DATA_DIR` (default .data/psp) holds its ledger.
const dir = resolve(process.env.PSP_DATA_DIR ?? join(".data", "psp"));
const port = Number(process.env.PSP_PORT ?? "4001");

if (claimOwnership(dir).kind === "held") {
  console.error(
    `Another provider process keeps the ledger in ${dir}. Nothing was changed; use that one, or stop it first.`,
  );
  process.exit(1);
}

const server = createPspServer(createProvider(openLedger(dir)));

server.once("error", (error) => {
  console.error(
    `The provider cannot listen on 127.0.0.1:${port}: ${error.message}. Set PSP_PORT to a free port, or to 0.`,
  );
  process.exit(1);
});
server.listen(port, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  publishJson(join(dir, "process.json"), { ...ownMark(), url });
  console.log(`oncekey psp ready ${JSON.stringify({ url, pid: process.pid })}`);
});

for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => process.exit(0));
