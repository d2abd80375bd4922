import { beginExecution, type ExecutionTerms, type Violation } from "./execution.ts";
import { continueFairly } from "./progress.ts";
import type { Schedule } from "./schedule.ts";
import type { FoundViolation } from "./search.ts";
import { createVisited } from "./visited.ts";

/** A violation with the shortest schedule that was found to it. */
export interface Shortened extends FoundViolation {
  /** Whether every shorter schedule was tried. */
  readonly isShortest: boolean;
}

/** How long may be looked for a shorter schedule. */
export interface ShortenLimits {
  readonly executions: number;
  readonly withinMs: number;
}

interface Node {
  readonly schedule: Schedule;
  /** Ways on from there; 0: it ended. */
  readonly count: number;
}

/**
 * Looks for the shortest schedule that breaks an invariant, breadth first: all of one length before any of the next. Where
 * that takes too long, gives the schedule that was found, without the choices that it can do without.
 */
export async function shorten(terms: ExecutionTerms, found: FoundViolation, limits: ShortenLimits): Promise<Shortened> {
  const endAtMs = performance.now() + limits.withinMs;
  const budget = { executions: limits.executions, endAtMs };
  const shortest = await breadthFirst(terms, found, budget);
  if (shortest !== "limit") return { ...(shortest ?? found), isShortest: true };
  const shorter = await withoutNeedless(terms, found, {
    executions: 500,
    endAtMs: performance.now() + limits.withinMs,
  });
  return { ...shorter, isShortest: false };
}

interface Left {
  executions: number;
  readonly endAtMs: number;
}

async function breadthFirst(
  terms: ExecutionTerms,
  known: FoundViolation,
  left: Left,
): Promise<FoundViolation | "limit" | null> {
  const visited = createVisited(true);
  let level: Node[] = [{ schedule: [], count: (await tryOut(terms, [], visited)).count }];
  for (let length = 1; length < known.schedule.length && level.length > 0; length++) {
    const next: Node[] = [];
    for (const { schedule, count } of level) {
      for (let place = 0; place < count; place++) {
        if (left.executions-- <= 0 || performance.now() > left.endAtMs) return "limit";
        const tried = await tryOut(terms, [...schedule, place], visited);
        if (tried.found !== null && tried.found.invariant === known.invariant) return tried.found;
        if (tried.isNew) next.push({ schedule: [...schedule, place], count: tried.count });
      }
    }
    level = next;
  }
  return null;
}

interface Tried {
  readonly found: FoundViolation | null;
  readonly count: number;
  readonly isNew: boolean;
}

/** Follows a schedule and looks at where it leads. */
async function tryOut(
  terms: ExecutionTerms,
  schedule: Schedule,
  visited: ReturnType<typeof createVisited>,
): Promise<Tried> {
  const execution = await beginExecution(terms);
  const labels: string[] = [];
  const at = (found: Violation | null) => (found === null ? null : { ...found, schedule, labels });
  try {
    for (const place of schedule) {
      const choice = execution.choices()[place];
      if (choice === undefined) return { found: null, count: 0, isNew: false };
      labels.push(choice.label);
      await execution.take(choice);
    }
    const count = execution.choices().length;
    const isNew = count > 0 && visited.enter(execution.digest(), execution.left);
    const broken = execution.violation(count === 0);
    if (broken !== null || count > 0) return { found: at(broken), count: broken === null ? count : 0, isNew };
    return { found: at(await continueFairly(execution)), count, isNew };
  } finally {
    await execution.end();
  }
}

/** Leaves out one choice after the other, for as long as the same invariant breaks without it. */
async function withoutNeedless(terms: ExecutionTerms, found: FoundViolation, left: Left): Promise<FoundViolation> {
  let best = found;
  for (let place = best.labels.length - 1; place >= 0; place--) {
    if (left.executions-- <= 0 || performance.now() > left.endAtMs) return best;
    const labels = best.labels.filter((_, index) => index !== place);
    const tried = await followLabels(terms, labels);
    if (tried?.invariant === found.invariant) {
      best = tried;
      place = Math.min(place, best.labels.length);
    }
  }
  return best;
}

/**
 * Follows a schedule by what its choices are called, leaving out those that there are not, until an invariant breaks;
 * goes on in the plain way where it does not. `null`: nothing is wrong.
 */
export async function followLabels(terms: ExecutionTerms, wanted: readonly string[]): Promise<FoundViolation | null> {
  const execution = await beginExecution(terms);
  const labels: string[] = [];
  const schedule: number[] = [];
  const queue = [...wanted];
  const at = (found: Violation): FoundViolation => ({ ...found, schedule, labels });
  try {
    for (let steps = 0; steps < wanted.length * 2 + 50; steps++) {
      const choices = execution.choices();
      if (choices.length === 0) {
        const broken = execution.violation(true) ?? (await continueFairly(execution));
        return broken === null ? null : at(broken);
      }
      const place = nextPlace(choices, queue);
      const choice = choices[place];
      if (choice === undefined) return null;
      labels.push(choice.label);
      schedule.push(place);
      await execution.take(choice);
      const broken = execution.violation(false);
      if (broken !== null) return at(broken);
    }
    return null;
  } finally {
    await execution.end();
  }
}

function nextPlace(choices: readonly { readonly label: string }[], queue: string[]): number {
  for (let label = queue.shift(); label !== undefined; label = queue.shift()) {
    const place = choices.findIndex((choice) => choice.label === label);
    if (place >= 0) return place;
  }
  return 0;
}
