import { type Check, check } from "../support/check.ts";
import type { Crew } from "./crew.ts";
import type { Job, JobDone } from "./job.ts";
import { scheduleText } from "./schedule.ts";
import type { Explored } from "./search.ts";
import type { World } from "./world.ts";

/** What a campaign is to do. */
export interface CampaignTerms {
  readonly worlds: readonly World[];
  /** Distinct schedules over all worlds. */
  readonly schedules: number;
  readonly seed: string;
  /** End at the first violation. */
  readonly untilViolation: boolean;
  say(line: string): void;
}

/** What it came to. */
export interface CampaignResult {
  readonly checks: readonly Check[];
  readonly figures: readonly (readonly [string, string | number])[];
}

/** Rounds in which what small worlds left over is given to the large ones. */
const ROUNDS = 20;

/**
 * Explores every world. Each gets an equal share of the schedules; what worlds that are complete did not need goes to the
 * others, so that the total is reached wherever the worlds are large enough for it.
 */
export async function runCampaign(terms: CampaignTerms, crew: Crew): Promise<CampaignResult> {
  const results = new Map<string, JobDone>();
  let goesOn = true;
  for (let round = 0; round < ROUNDS && goesOn; round++) {
    const jobs = jobsOf(terms, results);
    if (jobs.length === 0) break;
    await crew.doAll(jobs, (done) => {
      results.set(done.explored.world, done);
      terms.say(lineOf(done.explored));
      if (done.shortened !== null) sayViolation(terms, done);
      goesOn = !terms.untilViolation || done.shortened === null;
      return goesOn;
    });
  }
  return resultOf(terms, [...results.values()]);
}

function jobsOf({ worlds, schedules, seed }: CampaignTerms, results: ReadonlyMap<string, JobDone>): Job[] {
  const open = worlds.filter(({ name }) => {
    const known = results.get(name)?.explored;
    return known === undefined || (known.coverage === "sampled" && known.found === null);
  });
  const made = sum([...results.values()].map(({ explored }) => explored.schedules));
  const share = Math.ceil((schedules - made) / open.length);
  if (open.length === 0 || share <= 0) return [];
  return open.map(({ name }) => ({
    world: name,
    seed,
    schedules: (results.get(name)?.explored.schedules ?? 0) + share,
  }));
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);

function lineOf({ world, coverage, schedules, states, reduced, cut, longest, seconds }: Explored): string {
  const figures = `${schedules} schedules, ${states} states, ${reduced} reduced, ${cut} too long, longest ${longest}`;
  return `${world.padEnd(28)} ${coverage.padEnd(9)} ${figures}, ${seconds.toFixed(1)} s`;
}

function sayViolation({ say, seed }: CampaignTerms, { explored, shortened }: JobDone): void {
  if (shortened === null) return;
  const { invariant, found, labels, schedule, isShortest, then } = shortened;
  say(`VIOLATION in ${explored.world}: ${invariant}: ${found}`);
  say(`  the ${isShortest ? "shortest schedule" : "shortest schedule that was found"}, ${labels.length} choices:`);
  for (const [index, label] of labels.entries()) say(`  ${String(index + 1).padStart(3)}. ${label}`);
  for (const what of then ?? []) say(`    then ${what}`);
  say(`  replay: npm run explore -- --replay ${scheduleText(explored.world, seed, schedule, labels)}`);
}

function resultOf(terms: CampaignTerms, done: readonly JobDone[]): CampaignResult {
  const explored = done.map((one) => one.explored);
  const total = sum(explored.map(({ schedules }) => schedules));
  const isOver = terms.untilViolation && explored.some(({ found }) => found !== null);
  const worldChecks = explored.map(({ world, found }) =>
    check(`no schedule of ${world} breaks an invariant`, found === null ? [] : [`${found.invariant}: ${found.found}`]),
  );
  const isReached = total >= terms.schedules || explored.every(({ coverage }) => coverage === "complete");
  return {
    checks: isOver
      ? worldChecks
      : [...worldChecks, check("the schedules were reached, or every world is complete", isReached ? [] : [total])],
    figures: [
      ["worlds", explored.length],
      ["of them explored completely", explored.filter(({ coverage }) => coverage === "complete").length],
      ["distinct schedules", total],
      ["states", sum(explored.map(({ states }) => states))],
      ["steps", sum(explored.map(({ steps }) => steps))],
      ["schedules that led into a known state", sum(explored.map(({ reduced }) => reduced))],
      ["schedules that were too long", sum(explored.map(({ cut }) => cut))],
      ["longest schedule, in choices", Math.max(0, ...explored.map(({ longest }) => longest))],
      ["seconds of exploring, all children together", Math.round(sum(explored.map(({ seconds }) => seconds)))],
    ],
  };
}
