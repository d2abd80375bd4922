import { streamOf } from "./chance.ts";
import type { Choice } from "./choices.ts";
import { beginExecution, type Execution, type ExecutionTerms, longestOf, type Violation } from "./execution.ts";
import { continueFairly } from "./progress.ts";
import { Diverged, type Schedule, scheduleDigest } from "./schedule.ts";
import { createVisited, type Visited } from "./visited.ts";
import { walkPlace } from "./walk.ts";

/** What exploring a world came to. */
export interface Explored {
  readonly world: string;
  /** `complete`: every order there is, up to the reduction. `sampled`: the world is larger than its share. */
  readonly coverage: "complete" | "sampled";
  readonly schedules: number;
  readonly states: number;
  /** Steps taken in all schedules together, those that lead back to a choice included. */
  readonly steps: number;
  /** Schedules that ended in a state that was explored before. */
  readonly reduced: number;
  /** Schedules that were too long. */
  readonly cut: number;
  readonly longest: number;
  readonly seconds: number;
  readonly found: FoundViolation | null;
}

/** A violation and how the explorer came to it. */
export interface FoundViolation extends Violation {
  readonly schedule: Schedule;
  readonly labels: readonly string[];
}

/** An exploration of one world, which can be taken further. */
export interface Exploration {
  /** Explores on, until so many schedules were made in all, everything was explored, or something is wrong. */
  until(schedules: number): Promise<Explored>;
}

interface Frame {
  /** How many choices there were, and which one is explored now. */
  readonly count: number;
  place: number;
}

interface Search {
  readonly terms: ExecutionTerms;
  readonly visited: Visited;
  readonly seenEnds: Set<string>;
  /** The whole schedules that were made, so that a walk counts only where it is new. */
  readonly made: Set<string>;
  readonly counts: { schedules: number; steps: number; reduced: number; cut: number; longest: number };
  /** The way to where the depth-first search stands. */
  readonly frames: Frame[];
  phase: "begins" | "goes on" | "complete";
  found: FoundViolation | null;
  readonly walk: () => number;
}

/** Explores a world depth first, every order of its choices; a world that is larger than its share also by random walks. */
export function createExploration(terms: ExecutionTerms): Exploration {
  let spentMs = 0;
  const search: Search = {
    terms,
    visited: createVisited(terms.reduces),
    seenEnds: new Set(),
    made: new Set(),
    counts: { schedules: 0, steps: 0, reduced: 0, cut: 0, longest: 0 },
    frames: [],
    phase: "begins",
    found: null,
    walk: streamOf(`${terms.seed}:walk:${terms.world.name}`),
  };
  return {
    async until(schedules) {
      const startedAtMs = performance.now();
      const { counts } = search;
      await depthFirst(search, counts.schedules + Math.ceil((schedules - counts.schedules) / 2));
      if (search.phase !== "complete" && search.found === null) await randomWalks(search, schedules);
      // Where walks led to little that is new, the rest is done in order.
      await depthFirst(search, schedules);
      spentMs += performance.now() - startedAtMs;
      const { visited, found, phase } = search;
      const coverage = phase === "complete" ? "complete" : "sampled";
      return { world: terms.world.name, coverage, ...counts, states: visited.size, seconds: spentMs / 1_000, found };
    },
  };
}

/** Goes on with the search where it stands, until so many schedules were made. */
async function depthFirst(search: Search, schedules: number): Promise<void> {
  const { frames, counts } = search;
  while (search.phase !== "complete" && search.found === null && counts.schedules < schedules) {
    search.phase = "goes on";
    search.found = await oneSchedule(search);
    while (frames.length > 0 && isDone(frames.at(-1))) frames.pop();
    const last = frames.at(-1);
    if (last === undefined) search.phase = "complete";
    else last.place++;
  }
}

const isDone = (frame: Frame | undefined): boolean => frame !== undefined && frame.place + 1 >= frame.count;

/** Walks that were walked before, of all, from which on walking is given up: the world is nearly known. */
const STALE = 0.5;

/** Walks at random for the rest of the share, through states that were seen before as well: what is ahead may be new. */
async function randomWalks(search: Search, schedules: number): Promise<void> {
  const { counts } = search;
  const before = counts.schedules;
  for (let tries = 1; counts.schedules < schedules && search.found === null; tries++) {
    search.found = await oneWalk(search);
    if (tries >= 50 && counts.schedules - before < tries * STALE) return;
  }
}

/** Follows the frames, then goes on with the first choice of each new state, and adds a frame for it. */
async function oneSchedule(search: Search): Promise<FoundViolation | null> {
  const { frames } = search;
  const run = await beginRun(search);
  try {
    for (const { place, count } of frames) {
      const choices = run.execution.choices();
      if (choices.length !== count)
        throw notDeterministic(search, run.labels, `${choices.length} choices, not ${count}`);
      await step(search, run, choices, place);
    }
    const found = run.execution.violation(false);
    if (found !== null) return at(run, found);
    return await goOn(search, run, (choices) => {
      if (choices.length > 1 && !search.visited.enter(run.execution.digest(), run.execution.left)) {
        search.counts.reduced++;
        return null;
      }
      frames.push({ count: choices.length, place: 0 });
      return 0;
    });
  } finally {
    await endRun(search, run);
  }
}

async function oneWalk(search: Search): Promise<FoundViolation | null> {
  const run = await beginRun(search);
  try {
    return await goOn(search, run, (choices) => {
      if (choices.length > 1) search.visited.enter(run.execution.digest(), run.execution.left);
      return walkPlace(choices, search.walk);
    });
  } finally {
    await endRun(search, run);
  }
}

/** One schedule that is being made. */
interface Run {
  readonly execution: Execution;
  readonly labels: string[];
  readonly schedule: number[];
}

async function beginRun({ terms }: Search): Promise<Run> {
  return { execution: await beginExecution(terms), labels: [], schedule: [] };
}

async function endRun({ counts, made }: Search, { execution, labels, schedule }: Run): Promise<void> {
  counts.longest = Math.max(counts.longest, labels.length);
  const text = scheduleDigest(schedule);
  if (!made.has(text)) counts.schedules++;
  made.add(text);
  await execution.end();
}

/** Takes what `pick` gives (`null`: no further), until the end, something wrong, or the longest that a schedule may be. */
async function goOn(
  search: Search,
  run: Run,
  pick: (choices: readonly Choice[]) => number | null,
): Promise<FoundViolation | null> {
  const { execution, labels } = run;
  const mostSteps = longestOf(search.terms.world);
  for (;;) {
    const choices = execution.choices();
    if (choices.length === 0) return at(run, await endOf(search, execution));
    if (labels.length >= mostSteps) {
      search.counts.cut++;
      return null;
    }
    const place = pick(choices);
    if (place === null) return null;
    await step(search, run, choices, place);
    const found = execution.violation(false);
    if (found !== null) return at(run, found);
  }
}

function at({ schedule, labels }: Run, found: Violation): FoundViolation;
function at({ schedule, labels }: Run, found: Violation | null): FoundViolation | null;
function at({ schedule, labels }: Run, found: Violation | null): FoundViolation | null {
  return found === null ? null : { ...found, schedule, labels };
}

async function step(search: Search, run: Run, choices: readonly Choice[], place: number): Promise<void> {
  const choice = choices[place];
  if (choice === undefined) throw notDeterministic(search, run.labels, `no choice ${place}`);
  run.labels.push(choice.label);
  run.schedule.push(place);
  search.counts.steps++;
  await run.execution.take(choice);
}

/** What must hold at the end, and a fair continuation: once for each state that schedules end in. */
async function endOf(search: Search, execution: Execution): Promise<Violation | null> {
  const found = execution.violation(true);
  if (found !== null) return found;
  const digest = execution.digest();
  if (search.seenEnds.has(digest)) return null;
  search.seenEnds.add(digest);
  return continueFairly(execution);
}

function notDeterministic({ terms }: Search, labels: readonly string[], why: string): Diverged {
  return new Diverged(
    `${terms.world.name} is not deterministic: the same choices led elsewhere (${why}) after\n${labels.join("\n")}`,
  );
}
