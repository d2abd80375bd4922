/**
 * Feeds everything that reads what others wrote: parsers, canonical forms, stored rows, headers, the command line.
 *
 *   npm run fuzz -- [--minutes 2] [--seed 1] [--target NAME] [--proof]
 *   npm run fuzz -- --target NAME --input BASE64
 *
 * Each target runs in a process of its own. It checks properties over structured values, then mutates inputs and keeps
 * those that reach code first; each result is held against a reference that works another way. Then it measures how the
 * effort grows with inputs that are made to be slow. Before all that, planted faults must be seen. With `--input` one
 * input is tried again. Ends with "N passed, N failed".
 */
import { parseArgs } from "node:util";
import { faultOf } from "./fuzz/evolve.ts";
import { growthFault } from "./fuzz/growth.ts";
import { targets as planted, tellings } from "./fuzz/planted.ts";
import { seedFor } from "./fuzz/random.ts";
import type { Result } from "./fuzz/runner.ts";
import { type Supervised, supervise } from "./fuzz/supervise.ts";
import type { FuzzTarget } from "./fuzz/target.ts";
import { targets } from "./fuzz/targets.ts";
import { type Check, check } from "./support/check.ts";
import { runCommand, UsageError } from "./support/command.ts";
import { type Proof, report, say } from "./support/report.ts";

interface CampaignOptions {
  readonly minutes: number;
  readonly seed: number;
  /** One of them only. */
  readonly target: string | undefined;
  readonly input: string | undefined;
  /** Whether the figures are to be stored for docs/proof.md. */
  readonly proof: boolean;
}

/** A single input of 4 KiB must not take longer. */
const SLOWEST_MS = 2_000;
const MODULE = new URL("./fuzz/targets.ts", import.meta.url).href;
const PLANTED_MODULE = new URL("./fuzz/planted.ts", import.meta.url).href;
/** A planted fault ends its run once it is found. */
const PLANTED = { forMs: 0, silenceMs: 20_000, runs: 1, slowestMs: SLOWEST_MS, mostFound: 1 };
/** Most inputs to find one in. The maze took 13,000 to 279,000 with the seeds 1 to 20. */
const PLANTED_INPUTS = 1_000_000;
/** Those that are found by their growth need no mutations. */
const GROWING_INPUTS = 1_000;
/** What each target gets on the busiest machine. */
const LEAST = { atLeast: 5_000, slowestMs: SLOWEST_MS };
/** Runs of each property for every second that a target has. */
const RUNS_PER_SECOND = 200;

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const USAGE = `
Usage: npm run fuzz -- [--minutes 2] [--seed 1] [--target NAME] [--proof]
       npm run fuzz -- --target NAME --input BASE64

  --minutes   time for mutations, all targets together; planted faults and growth come on top
  --seed      a whole number from 0
  --target    one of them only: ${targets.map(({ name }) => name).join(", ")}
  --input     tries this one input of the target again
  --proof     stores the figures under lab/proof/
`;

function readOptions(): CampaignOptions {
  const option = { type: "string" } as const;
  const { values } = parseArgs({
    options: { minutes: option, seed: option, target: option, input: option, proof: { type: "boolean" } },
  });
  const minutes = Number(values.minutes ?? 2);
  if (!(minutes > 0 && Number.isFinite(minutes))) throw new UsageError("--minutes is a number above 0.");
  const { seed = "1", input } = values;
  if (!/^\d{1,15}$/.test(seed)) throw new UsageError("--seed is a whole number from 0.");
  if (input !== undefined && !BASE64.test(input)) throw new UsageError("--input is base64.");
  if (input !== undefined && values.target === undefined) throw new UsageError("--input needs --target.");
  return { minutes, seed: Number(seed), target: values.target, input, proof: values.proof === true };
}

function chosen(name: string | undefined): readonly FuzzTarget[] {
  const found = name === undefined ? targets : targets.filter((one) => one.name === name);
  if (found.length > 0) return found;
  throw new UsageError(`There is no target "${name}".`);
}

/** One check a planted fault: it holds where the fault was seen. */
async function seesPlanted(seed: number): Promise<Check[]> {
  const checks: Check[] = [];
  for (const [at, { name, families }] of planted.entries()) {
    const { silenceMs, ...rest } = PLANTED;
    const assignment = { ...rest, atLeast: families.length > 0 ? GROWING_INPUTS : PLANTED_INPUTS };
    const end = await supervise({ ...assignment, module: PLANTED_MODULE, target: name, seed }, { silenceMs });
    const seen = faultsOf(null, end).filter((fault) => tellings[at]?.test(fault));
    say(`planted ${name}: ${seen[0] ?? "not seen"}`);
    checks.push(check(`a planted fault is seen: ${name}`, seen.length > 0 ? [] : ["it was not"]));
  }
  return checks;
}

// `target` is a name that `--target` knows, or `null`: then there is no command to try an input again.
function faultsOf(target: string | null, end: Supervised): string[] {
  const withCommand = (what: string, base64: string | null) =>
    // Neither base64 nor the names hold what a shell reads; an empty input must be quoted.
    target === null || base64 === null
      ? what
      : `${what} (npm run fuzz -- --target ${target} --input ${base64 || "''"})`;
  if (end.kind !== "result") {
    const what = end.kind === "hung" ? "an input hangs" : "an input ended the process";
    return [withCommand(what, Buffer.from(end.input).toString("base64"))];
  }
  const { found, growths } = end.result;
  return [
    ...found.map(({ what, base64 }) => withCommand(what, base64)),
    ...growths.flatMap((growth) => {
      const fault = growthFault(growth);
      return fault === null ? [] : [`${growth.family}: ${fault}`];
    }),
  ];
}

interface Sums {
  inputs: number;
  accepted: number;
  kept: number;
  blocks: number;
  families: number;
  properties: number;
  worstWork: number;
  slowestMs: number;
}

async function fuzzTarget({ name, about }: FuzzTarget, forMs: number, seed: number, sums: Sums): Promise<Check> {
  const runs = Math.max(200, Math.round((forMs / 1_000) * RUNS_PER_SECOND));
  const assignment = { module: MODULE, target: name, seed: seedFor(seed, name), forMs, runs, ...LEAST };
  const end = await supervise(assignment);
  if (end.kind === "result") add(sums, name, end.result);
  return check(`${name}: ${about}`, faultsOf(name, end));
}

function add(sums: Sums, name: string, { evolution, growths, blocks, properties }: Result): void {
  const { inputs, accepted, kept, slowestMs } = evolution;
  const worst = growths.reduce((most, { work }) => Math.max(most, work), 0);
  say(
    `${name}: ${inputs} inputs, ${accepted} accepted, ${kept} kept, ${blocks} characters of code reached, ${growths.length} families, worst growth ${worst.toFixed(2)}`,
  );
  sums.inputs += inputs;
  sums.accepted += accepted;
  sums.kept += kept;
  sums.blocks += blocks;
  sums.families += growths.length;
  sums.properties += properties;
  sums.worstWork = Math.max(sums.worstWork, worst);
  sums.slowestMs = Math.max(sums.slowestMs, slowestMs);
}

async function tryAgain(target: FuzzTarget, base64: string): Promise<number> {
  const fault = await faultOf(target, Buffer.from(base64, "base64"));
  say(fault ?? "nothing is wrong with this input");
  return fault === null ? 0 : 1;
}

function proofOf({ minutes, seed, target }: CampaignOptions, fuzzed: number, sums: Sums): Proof {
  return {
    campaign: "fuzz",
    command: `npm run fuzz -- --minutes ${minutes} --seed ${seed}${target === undefined ? "" : ` --target ${target}`}`,
    figures: [
      ["targets", fuzzed],
      ["inputs mutated", sums.inputs],
      ["of them accepted by the code", sums.accepted],
      ["inputs kept for reaching code first", sums.kept],
      ["characters of code reached", sums.blocks],
      ["properties", sums.properties],
      ["families of growing inputs", sums.families],
      ["most work at twice the input (2 is linear)", sums.worstWork.toFixed(2)],
      ["planted faults", planted.length],
    ],
  };
}

async function main(): Promise<number> {
  const options = readOptions();
  const fuzzed = chosen(options.target);
  const [only] = fuzzed;
  if (options.input !== undefined && only !== undefined) return tryAgain(only, options.input);
  const sums: Sums = {
    ...{ inputs: 0, accepted: 0, kept: 0, blocks: 0, families: 0, properties: 0, worstWork: 0, slowestMs: 0 },
  };
  const checks = await seesPlanted(options.seed);
  for (const target of fuzzed) {
    checks.push(await fuzzTarget(target, (options.minutes * 60_000) / fuzzed.length, options.seed, sums));
  }
  return report(proofOf(options, fuzzed.length, sums), checks, { write: options.proof });
}

await runCommand(USAGE, main);
