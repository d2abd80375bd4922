/**
 * Runs the real engine through every order of its steps, in small worlds, with crashes, pauses, lost answers and time that
 * passes; each schedule is checked against what must hold.
 *
 *   npm run explore -- [--schedules 1000000] [--seed 1] [--world NAME …] [--workers 2] [--until-violation] [--proof]
 *   npm run explore -- --replay WORLD:SEED:CHOICES:DIGEST
 *   npm run explore -- --store postgres [--layout partitioned] [--schedules 500]
 *
 * Ends with "N passed, N failed". See docs/exploring.md.
 */

import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import type { LayoutName } from "oncekey/postgres";
import { runCampaign } from "./explore/campaign.ts";
import { createCrew } from "./explore/crew.ts";
import { memoryTerms, worldNamed } from "./explore/job.ts";
import { runOnPostgres } from "./explore/postgres/campaign.ts";
import { quietly } from "./explore/quietly.ts";
import { replay } from "./explore/replay.ts";
import { Diverged, parseSchedule } from "./explore/schedule.ts";
import { worlds } from "./explore/worlds/index.ts";
import { runCommand, UsageError, wholeNumber } from "./support/command.ts";
import { type Proof, report, say } from "./support/report.ts";

function readOptions() {
  const text = { type: "string" } as const;
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({
    options: {
      ...{ schedules: text, seed: { ...text, default: "1" }, world: { ...text, multiple: true } },
      ...{ workers: text, replay: text, store: { ...text, default: "memory" }, layout: { ...text, default: "plain" } },
      ...{ "until-violation": flag, proof: flag },
    },
  });
  if (values.store !== "memory" && values.store !== "postgres") throw new UsageError("--store is memory or postgres.");
  return {
    ...values,
    layout: layoutNamed(values.layout),
    schedules: wholeNumber("--schedules", values.schedules ?? (values.store === "memory" ? 1_000_000 : 500)),
    workers: wholeNumber("--workers", values.workers ?? availableParallelism()),
    worlds: values.world === undefined ? worlds : values.world.map(worldNamed),
  };
}

function layoutNamed(name: string): LayoutName {
  if (name !== "plain" && name !== "partitioned") throw new UsageError("--layout is plain or partitioned.");
  return name;
}

type Options = ReturnType<typeof readOptions>;

async function exploreAll(options: Options): Promise<number> {
  const { schedules, seed, workers } = options;
  const crew = await createCrew(Math.min(workers, options.worlds.length));
  try {
    const terms = { worlds: options.worlds, schedules, seed, untilViolation: options["until-violation"], say };
    const { checks, figures } = await runCampaign(terms, crew);
    const command = `npm run explore -- --schedules ${schedules} --seed ${seed}`;
    const proof: Proof = { campaign: "explore", command, figures };
    return await report(proof, checks, { write: options.proof });
  } finally {
    await crew.close();
  }
}

async function compareStores(options: Options): Promise<number> {
  const { schedules, seed, layout } = options;
  const { checks, figures } = await runOnPostgres({ worlds: options.worlds, schedules, seed, layout, say });
  const isPlain = layout === "plain";
  const command = `npm run explore -- --store postgres${isPlain ? "" : ` --layout ${layout}`} --schedules ${schedules} --seed ${seed}`;
  const campaign = isPlain ? "explore-postgres" : `explore-postgres-${layout}`;
  return await report({ campaign, command, figures }, checks, { write: options.proof });
}

async function replayOne(text: string): Promise<number> {
  const parsed = parseSchedule(text);
  const world = worldNamed(parsed.world);
  const replayed = await replay(memoryTerms(world, parsed.seed), parsed, say).catch(divergedText);
  if (typeof replayed === "string") {
    say(replayed);
    return 1;
  }
  const { violation } = replayed;
  for (const what of violation?.then ?? []) say(`then ${what}`);
  say(violation === null ? "Nothing is wrong." : `VIOLATION: ${violation.invariant}: ${violation.found}`);
  return violation === null ? 0 : 1;
}

/** A schedule of other code, or of a world that was changed since, leads elsewhere: no fault of the explorer's. */
function divergedText(error: unknown): string {
  if (error instanceof Diverged) return `${error.message} The schedule was made by other code, or in another world.`;
  throw error;
}

async function main(): Promise<number> {
  quietly();
  const options = readOptions();
  if (options.replay !== undefined) return replayOne(options.replay);
  return options.store === "memory" ? exploreAll(options) : compareStores(options);
}

const USAGE = `
npm run explore -- [--schedules 1000000] [--seed 1] [--world NAME …] [--workers 2] [--until-violation] [--proof]
npm run explore -- --replay WORLD:SEED:CHOICES:DIGEST
npm run explore -- --store postgres [--layout partitioned] [--schedules 500]
`;

await runCommand(USAGE, main);
