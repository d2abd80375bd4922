import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TOKENS } from "./auth.ts";
import { apiProcess } from "./demo/api-process.ts";
import { type Chaos, startChaos } from "./demo/chaos.ts";
import { formatReport, holds, makeReport } from "./demo/report.ts";
import { type Storm, startStorm } from "./demo/storm.ts";

// npm run demo: 200 payments, each sent 5 times at once, one in ten also with a changed payload; the provider cuts
// connections and lands payments late, the API is killed and restarted twice. Each payment must happen exactly once.

const PAYMENTS = Number(process.env.ONCEKEY_DEMO_PAYMENTS || "200");
const COPIES = 5;
const KILL_AT = [0.3, 0.65];
/** Whatever the environment says: a storm must never reach a database or a provider of yours. */
const ISOLATED = {
  PORT: "0",
  PSP_PORT: "0",
  DATABASE_URL: "",
  PSP_URL: "",
  ONCEKEY_PROFILE: "",
  ONCEKEY_PSP_RECOVER: "",
  ONCEKEY_RETENTION_MS: "",
  ONCEKEY_WAIT_MS: "",
  ONCEKEY_WORKER: "",
  ONCEKEY_LAB: "",
};
const [TOKEN = ""] = TOKENS.keys();

async function main(): Promise<boolean> {
  const dir = mkdtempSync(join(tmpdir(), "oncekey-demo-"));
  chmodSync(dir, 0o755);
  // A short lease, so that what a killed API left is taken up within seconds instead of half a minute.
  const api = apiProcess({ ...ISOLATED, ONCEKEY_DATA_DIR: dir, ONCEKEY_LEASE_MS: "4000" });
  console.log(
    `\n  ${PAYMENTS} payments, ${COPIES} concurrent copies of each, a hostile provider, ${KILL_AT.length} kills\n`,
  );
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    process.once(signal, () => void api.stop().then(() => process.exit(1)));
  try {
    await api.start();
    const startedAtMs = performance.now();
    const options = { payments: PAYMENTS, copies: COPIES, changedEvery: 10, parallel: 25, token: TOKEN };
    const storm = startStorm({ ...options, api: () => api.urls.api });
    const chaos = startChaos(api, storm, KILL_AT);
    const hide = showProgress(storm, chaos, startedAtMs);
    await Promise.race([storm.over, chaos.broken, api.crashed]).finally(hide);
    await chaos.stop();
    const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(1);
    const report = await makeReport(api, storm, TOKEN);
    report.push({ name: "API killed and restarted", value: chaos.kills(), wanted: KILL_AT.length });
    console.log(`${formatReport([...report, { name: "time", value: `${seconds} s` }])}\n`);
    for (const surprise of new Set(storm.counts.surprises)) console.log(`  surprise: ${surprise}`);
    console.log(holds(report) ? "  Every payment happened exactly once.\n" : "  AN INVARIANT DOES NOT HOLD.\n");
    return holds(report);
  } finally {
    await api.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Redraws one line on a terminal, prints one every two seconds elsewhere. Gives the function that ends it. */
function showProgress({ payments, counts }: Storm, chaos: Chaos, startedAtMs: number): () => void {
  const live = process.stdout.isTTY === true;
  const draw = () => {
    const done = Math.round((counts.answered / payments.length) * 24);
    const bar = `${"█".repeat(done)}${"░".repeat(24 - done)}`;
    const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(0).padStart(3);
    const numbers = `${counts.answered}/${payments.length} paid · ${counts.requests} requests · ${counts.replays} replays`;
    const line = `  ${bar} ${seconds} s  ${numbers} · ${counts.broken} broken · ${chaos.kills()} kills`;
    process.stdout.write(live ? `\r\x1b[2K${line}` : `${line}\n`);
  };
  const timer = setInterval(draw, live ? 100 : 2_000);
  return () => {
    clearInterval(timer);
    draw();
    process.stdout.write("\n");
  };
}

main().then(
  (held) => process.exit(held ? 0 : 1),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(1);
  },
);
