/**
 * Breaks the protocol on purpose, one break at a time in a copy of the repository, and checks that each is noticed by the
 * test, world or campaign that is named for it, and for the right reason.
 *
 *   npm run canaries -- [--only id,id] [--sample N --seed S] [--jobs 2] [--proof]
 *
 * Every catcher first has to pass on the unbroken copy. Prints each break with who caught it; ends with `caught N of N` and the line "N passed, N failed".
 */

import { parseArgs } from "node:util";
import { startTestServer } from "../test/support/postgres-server.ts";
import { prepareTests } from "./canaries/by-test.ts";
import { type Canary, type Catcher, catcherName } from "./canaries/canary.ts";
import {
  catchersOf,
  type Ground,
  grouped,
  isCaught,
  type Outcome,
  type Tried,
  tryAll,
  tryCanary,
} from "./canaries/catching.ts";
import { staleness } from "./canaries/mutation.ts";
import { CANARIES } from "./canaries/plants/index.ts";
import { sampled } from "./canaries/sample.ts";
import { copyTree } from "./canaries/tree.ts";
import { type Check, check } from "./support/check.ts";
import { runCommand, UsageError, wholeNumber } from "./support/command.ts";
import { type Proof, report, say } from "./support/report.ts";

interface CampaignOptions {
  readonly canaries: readonly Canary[];
  readonly jobs: number;
  readonly proof: boolean;
  /** The options that choose the same canaries again. */
  readonly chosenBy: string;
}

function readOptions(): CampaignOptions {
  const text = { type: "string" } as const;
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({
    options: { only: text, sample: text, seed: text, jobs: text, proof: flag },
  });
  const jobs = wholeNumber("--jobs", values.jobs ?? "2");
  const common = { jobs, proof: values.proof };
  if (values.only !== undefined)
    return { ...common, canaries: named(values.only), chosenBy: ` -- --only ${values.only}` };
  if (values.sample === undefined) return { ...common, canaries: CANARIES, chosenBy: "" };
  const size = wholeNumber("--sample", values.sample);
  const seed = wholeNumber("--seed", values.seed ?? "1");
  return { ...common, canaries: sampled(CANARIES, size, seed), chosenBy: ` -- --sample ${size} --seed ${seed}` };
}

function named(ids: string): Canary[] {
  return ids.split(",").map((id) => {
    const canary = CANARIES.find((one) => one.id === id);
    if (canary === undefined) throw new UsageError(`There is no canary ${id}; docs/canaries.md lists them.`);
    return canary;
  });
}

/** Does work on each item, on so many grounds at once. */
async function spread<T, R>(
  grounds: readonly Ground[],
  items: readonly T[],
  work: (ground: Ground, item: T) => Promise<R>,
) {
  const waiting = [...items];
  const done: R[] = [];
  const worker = async (ground: Ground) => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) done.push(await work(ground, item));
  };
  await Promise.all(grounds.map(worker));
  return done;
}

/** What the catchers say of the unbroken tree; those of one test file stay together. */
async function unbroken(grounds: readonly Ground[], canaries: readonly Canary[]): Promise<Tried[]> {
  const groups = grouped(catchersOf(canaries), (one) => ("test" in one ? one.test : catcherName(one)));
  const tried = await spread(grounds, groups, (ground, group) => tryAll(ground, group));
  return tried.flat();
}

async function campaign(grounds: readonly [Ground, ...Ground[]], canaries: readonly Canary[]) {
  const stale: string[] = [];
  for (const { id, edits } of canaries) {
    const why = await staleness(edits, grounds[0].root);
    if (why !== null) stale.push(`${id}: ${why}`);
  }
  const fresh = canaries.filter(({ id }) => !stale.some((one) => one.startsWith(`${id}: `)));
  const healthy = await unbroken(grounds, fresh);
  const sick = healthy.filter(({ verdict }) => verdict.kind !== "clean");
  const isSick = (catcher: Catcher) => sick.some((one) => catcherName(one.catcher) === catcherName(catcher));
  say(`${healthy.length} catchers were asked about the unbroken tree`);
  // What fails anyway would catch anything.
  const askable = fresh.filter(({ caughtBy }) => !caughtBy.some(isSick));
  const outcomes = await spread(grounds, askable, async (ground, canary) => {
    const outcome = await tryCanary(ground, canary);
    for (const line of rows(outcome)) say(line);
    return outcome;
  });
  return { stale, healthy, sick, outcomes };
}

/** A canary in the table: one line for each catcher. */
function rows({ canary: { id, what }, tried, seconds }: Outcome): string[] {
  const head = `${id} (${seconds.toFixed(1)} s): ${what}`;
  return [
    head,
    ...tried.map(({ catcher, verdict }) => `    ${words(verdict)} ${catcherName(catcher)}${detail(verdict)}`),
  ];
}

function words({ kind }: Tried["verdict"]): string {
  return kind === "caught" ? "caught by" : "NOT CAUGHT by";
}

function detail(verdict: Tried["verdict"]): string {
  if (verdict.kind === "clean") return "";
  return ` — ${verdict.kind === "caught" ? verdict.how : verdict.why}`;
}

function checksOf(
  canaries: readonly Canary[],
  { stale, sick, outcomes }: Awaited<ReturnType<typeof campaign>>,
): Check[] {
  const caught = outcomes.filter(isCaught);
  const missed = canaries.map(({ id }) => id).filter((id) => !caught.some(({ canary }) => canary.id === id));
  const ailing = sick.map(({ catcher, verdict }) => `${catcherName(catcher)}${detail(verdict)}`);
  return [
    check("every break can still be made as it is written", stale),
    check("every catcher passes on the unbroken tree", ailing),
    check(`caught ${caught.length} of ${canaries.length}`, missed),
  ];
}

function proofOf({ chosenBy }: CampaignOptions, { healthy, outcomes }: Awaited<ReturnType<typeof campaign>>): Proof {
  const by = (kind: string) => healthy.filter(({ catcher }) => kind in catcher).length;
  const figures = [
    ["breaks made", outcomes.length],
    ["caught", outcomes.filter(isCaught).length],
    ["tests that caught them", by("test")],
    ["explored worlds that caught them", by("world")],
    ["campaigns that caught them", by("lab")],
  ] as const;
  return { campaign: "canaries", command: `npm run canaries${chosenBy}`, figures };
}

async function main(): Promise<number> {
  const options = readOptions();
  const trees = await Promise.all(Array.from({ length: options.jobs }, copyTree));
  const server = await startTestServer();
  try {
    const env = { ONCEKEY_TEST_POSTGRES: String(server.port) };
    const grounds = trees.map(({ root }): Ground => ({ root, env })) as [Ground, ...Ground[]];
    await Promise.all(grounds.map(({ root }) => prepareTests(root)));
    const result = await campaign(grounds, options.canaries);
    return await report(proofOf(options, result), checksOf(options.canaries, result), { write: options.proof });
  } finally {
    await server.close();
    await Promise.all(trees.map((tree) => tree.remove()));
  }
}

const USAGE = "npm run canaries -- [--only id,id] [--sample N --seed S] [--jobs 2] [--proof]";

await runCommand(USAGE, main);
