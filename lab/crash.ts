/**
 * Breaks the running example in every way it can, while a fleet of clients retries, and checks what is left.
 *
 *   npm run lab -- [--minutes 10] [--seed S] [--recover dedupes|find_cancel] [--proof]
 *
 * Three APIs, two workers, two relays, the provider, PostgreSQL and the clients are processes of their own; every wire goes
 * through a proxy. A seed repeats the plan of the faults, not the races. Ends with "N passed, N failed". docs/lab.md tells
 * what is done and how to read it.
 */

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkCanaries } from "./crash/canaries.ts";
import { checkOf, invariantsOf } from "./crash/checks/index.ts";
import { type Display, openDisplay } from "./crash/display.ts";
import { drive, type FaultTally } from "./crash/driver.ts";
import { collect, type Evidence } from "./crash/evidence.ts";
import { FAULTS } from "./crash/faults.ts";
import { figuresOf } from "./crash/figures.ts";
import { CUSTOMERS } from "./crash/orders.ts";
import { progressOf } from "./crash/progress.ts";
import { comeToRest } from "./crash/rest.ts";
import { BODY_MARK, type CampaignOptions, readOptions } from "./crash/terms.ts";
import { openWorld, type World } from "./crash/world.ts";
import { runCommand } from "./support/command.ts";
import { report } from "./support/report.ts";

const MINUTE_MS = 60_000;
/** The exit code of a program that was ended by SIGINT. */
const INTERRUPTED = 130;

function commandOf({ minutes, seed, recover }: CampaignOptions): string {
  return `npm run lab -- --minutes ${minutes} --seed ${seed} --recover ${recover}`;
}

/** The first signal ends the campaign in order, the second one at once. */
function stopRequest(): AbortController {
  const stopping = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (stopping.signal.aborted) process.exit(1);
      stopping.abort();
    });
  }
  return stopping;
}

/** Faults under traffic, then rest, then everything that can be known; `null` where somebody ended it before. */
async function campaign(world: World, stopping: AbortSignal): Promise<Evidence | null> {
  const progress = progressOf(world);
  const display = openDisplay(process.stdout, progress.line);
  const tell = (name: string, what: string) => display.say(`${progress.time()}  ${name.padEnd(24)} ${what}`);
  const broken: string[] = [];
  try {
    for (const clients of world.crew.of("clients")) await clients.start();
    const { minutes, seed } = world.options;
    const terms = { faults: FAULTS, seed, lastsMs: minutes * MINUTE_MS, stopping };
    const driving = drive(world, terms, {
      onFault: progress.onFault,
      onStruck: (name, { did }) => tell(name, did),
      onBroken(name, error) {
        broken.push(`${name}: ${error instanceof Error ? error.message : error}`);
        tell(name, `BROKEN: ${error}`);
      },
    });
    // Whoever wants it to end does not wait for a fault that takes its time.
    const faults = await Promise.race([driving, aborted(stopping)]);
    if (faults === null) return null;
    tellMissing(faults, display);
    await Promise.race([comeToRest(world, (what) => tell("", what), stopping), aborted(stopping)]);
    if (stopping.aborted) return null;
    const secrets = [...CUSTOMERS.map(([token]) => token), BODY_MARK, ...world.deploy.secrets()];
    return await collect(world, { faults, broken, secrets });
  } finally {
    display.close();
  }
}

function aborted(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    signal.addEventListener("abort", () => resolve(null), { once: true });
  });
}

/** What cannot be broken here is no success. */
function tellMissing(faults: readonly FaultTally[], display: Display): void {
  for (const { name, missing } of faults)
    if (missing !== null) display.say(`not done here: ${name}, because ${missing}`);
}

/** What was found wrong can be looked into afterwards: the races do not come again. */
function keepEvidence(evidence: Evidence): void {
  const path = join(mkdtempSync(join(tmpdir(), "oncekey-lab-evidence-")), "evidence.json");
  writeFileSync(path, JSON.stringify(evidence, null, 1), { mode: 0o600 });
  process.stdout.write(`everything that was read is kept in ${path}\n`);
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  const stopping = stopRequest();
  process.stdout.write(`${commandOf(options)}\n`);
  const world = await openWorld(options);
  let evidence: Evidence | null;
  try {
    evidence = await campaign(world, stopping.signal);
  } finally {
    await world.close();
  }
  if (evidence === null) {
    process.stdout.write("Ended before it was over: nothing was checked.\n");
    // A fault that was under way has nothing left to come back to.
    process.exit(INTERRUPTED);
  }
  const checks = [...invariantsOf(evidence).map(checkOf), checkCanaries(evidence)];
  if (checks.some(({ passed }) => !passed)) keepEvidence(evidence);
  const proof = { campaign: "crash", command: commandOf(options), figures: figuresOf(evidence) };
  return report(proof, checks, { write: options.proof });
}

const USAGE = "npm run lab -- [--minutes 10] [--seed S] [--recover dedupes|find_cancel] [--proof]";

await runCommand(USAGE, main);
