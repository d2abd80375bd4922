/**
 * Kills the primary of a replicated PostgreSQL under load, and checks what is kept.
 *
 *   npm run lab:failover -- [--mode synchronous|asynchronous|both] [--rounds 3] [--seed 1] [--proof]
 *
 * Three nodes on the loopback: etcd, Patroni and PostgreSQL of Debian (`apt-get install etcd-server patroni postgresql-15`).
 * In front of them a router that leads to whoever leads, four API processes of the example, two payment providers (one
 * does not dedupe), and clients that retry until they have an answer. With one round only the primary is killed, and
 * (synchronous) the standbys are stopped; with more it is also switched over, restarted, and cut off from its Patroni.
 * The seed decides what clients send; the races are the machine's. Ends with "N passed, N failed".
 */

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Findings, runMode } from "./failover/campaign.ts";
import { type Mode, startCluster } from "./failover/cluster.ts";
import { openHost } from "./failover/host.ts";
import { runCommand, UsageError } from "./support/command.ts";
import { fleetOf } from "./support/fleet.ts";
import { randomOf } from "./support/random.ts";
import { report } from "./support/report.ts";

interface FailoverOptions {
  readonly modes: readonly Mode[];
  readonly mode: string;
  readonly rounds: number;
  readonly seed: number;
  /** Whether the figures are to be stored for docs/proof.md. */
  readonly proof: boolean;
}

const API = fileURLToPath(new URL("./failover/api.ts", import.meta.url));
const MODES: readonly Mode[] = ["synchronous", "asynchronous"];

function readOptions(): FailoverOptions {
  const option = { type: "string" } as const;
  const { values } = parseArgs({
    options: { mode: option, rounds: option, seed: option, proof: { type: "boolean" } },
  });
  const { mode = "both", rounds = "3", seed = "1", proof = false } = values;
  const modes = MODES.filter((one) => mode === "both" || mode === one);
  if (modes.length === 0) throw new UsageError("--mode is synchronous, asynchronous or both");
  for (const text of [rounds, seed]) {
    if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError("--rounds and --seed are whole numbers from 1");
  }
  return { modes, mode, rounds: Number(rounds), seed: Number(seed), proof };
}

async function main(): Promise<number> {
  const { modes, mode, rounds, seed, proof } = readOptions();
  const startedAtMs = performance.now();
  const say = (line: string) =>
    void process.stdout.write(`${((performance.now() - startedAtMs) / 1_000).toFixed(1)} s  ${line}\n`);
  const host = openHost();
  const fleet = await fleetOf({ api: API });
  const close = async () => {
    await fleet.close();
    await host.close();
  };
  const interrupted = () => void close().finally(() => process.exit(130));
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, interrupted);
  try {
    const found: Findings[] = [];
    const cluster = await startCluster(host, modes[0] ?? "synchronous");
    say("three nodes are up");
    for (const one of modes) {
      await cluster.setMode(one);
      found.push(await runMode({ host, cluster, fleet, mode: one, rounds, random: randomOf(seed, one).unit, say }));
    }
    await cluster.close();
    const command = `npm run lab:failover -- --mode ${mode} --rounds ${rounds} --seed ${seed}`;
    const figures = found.flatMap((one) => one.figures);
    return await report(
      { campaign: "failover", command, figures },
      found.flatMap((one) => one.checks),
      { write: proof },
    );
  } finally {
    await close();
  }
}

const USAGE = "npm run lab:failover -- [--mode synchronous|asynchronous|both] [--rounds 3] [--seed 1] [--proof]";

await runCommand(USAGE, main);
