import type { Coverage } from "./coverage.ts";
import { runQuietly } from "./evolve.ts";
import type { Family, FuzzTarget } from "./target.ts";

/** How the effort grows when the input does. */
export interface Growth {
  readonly target: string;
  readonly family: string;
  /** Largest factor of the counted work at a doubling; 2 is linear, 4 quadratic. 0: too little to tell. */
  readonly work: number;
  /** Largest factor of the time between a size and eight times that: 8 is linear, 64 quadratic. 0: too little to tell. */
  readonly time: number;
  /** The largest size that was measured, in bytes, and the processor's time for it, in milliseconds. */
  readonly size: number;
  readonly tookMs: number;
}

const FIRST_SIZE = 1_024;
const DOUBLINGS = 8;
/** So many doublings lie between two sizes whose times are compared. */
const APART = 3;
/** Once a size takes this long, no larger one is tried: but for what a comparison needs, or slow machines would see nothing. */
const ENOUGH_MS = 250;
const TIMED = 3;
/** How often a growth that looks too steep is timed anew. */
const CONFIRMED = 3;
/** Sorting makes it a little more than 2. */
const MOST_WORK = 2.5;
/** Far above 8, for the memory that a larger input takes and the noise of a busy machine; far below 64. */
const MOST_TIME = 32;
/** What is done faster than this tells nothing of its growth. */
const TELLING_MS = 100;
/** Less work than this was a refusal at once. */
const TELLING_WORK = 2_000;
/** Below this, in bytes, what an input costs besides its size makes the counted work grow by steps. */
const WORK_FROM_SIZE = 4_096;

interface Measured {
  readonly size: number;
  readonly work: number;
  readonly tookMs: number;
}

/**
 * Measures a family from 1 KiB up to 256 KiB: blocks as the engine counts them, which no clock disturbs, and the shortest of
 * three times of the processor, for what the engine does without counting (regular expressions, searching, sorting).
 * `before` is called before each size.
 */
export function measureGrowth(
  target: FuzzTarget,
  family: Family,
  coverage: Coverage,
  before: (size: number) => void = () => {},
): Growth {
  let all = measureSizes(target, family, coverage, before);
  // What is slow stays slow; what a busy machine has slowed down does not.
  for (let again = 0; again < CONFIRMED && Math.max(0, ...timeFactors(all)) > MOST_TIME; again++) {
    all = all.map((one) => {
      before(one.size);
      return { ...one, tookMs: Math.min(one.tookMs, fastestMs(target, family.make(one.size))) };
    });
  }
  const last = all.at(-1) ?? { size: 0, work: 0, tookMs: 0 };
  return {
    ...{ target: target.name, family: family.name, size: last.size, tookMs: last.tookMs },
    work: Math.max(0, ...workFactors(all)),
    time: Math.max(0, ...timeFactors(all)),
  };
}

function measureSizes(
  target: FuzzTarget,
  family: Family,
  coverage: Coverage,
  before: (size: number) => void,
): Measured[] {
  const all: Measured[] = [];
  const enough = (): boolean => all.length > APART && (all.at(-1)?.tookMs ?? 0) >= ENOUGH_MS;
  for (let doubling = 0; doubling <= DOUBLINGS && !enough(); doubling++) {
    const size = FIRST_SIZE << doubling;
    before(size);
    const input = family.make(size);
    all.push({ size, work: workOf(target, input, coverage), tookMs: fastestMs(target, input) });
  }
  return all;
}

function workFactors(all: readonly Measured[]): number[] {
  const counted = all.filter(({ size }) => size >= WORK_FROM_SIZE);
  return counted.slice(1).map(({ work }, at) => (work > TELLING_WORK ? work / Math.max(1, counted[at]?.work ?? 1) : 0));
}

// Of all sizes that tell something: a moment's noise in one of them hides nothing then.
function timeFactors(all: readonly Measured[]): number[] {
  return all.slice(APART).map(({ tookMs }, at) => {
    const eighth = all[at]?.tookMs ?? 0;
    return tookMs > TELLING_MS ? tookMs / Math.max(eighth, 0.01) : 0;
  });
}

/** What is wrong with a growth, or `null`. */
export function growthFault({ work, time, size, tookMs }: Growth): string | null {
  const ended = `${Math.round(tookMs)} ms for ${size} bytes`;
  if (work > MOST_WORK) return `twice the input takes ${work.toFixed(1)} times the work (${ended})`;
  return time > MOST_TIME ? `eight times the input takes ${time.toFixed(0)} times as long (${ended})` : null;
}

function workOf(target: FuzzTarget, input: Uint8Array, coverage: Coverage): number {
  coverage.work();
  runQuietly(target, input);
  return coverage.work();
}

// Time of the processor: what else runs on the machine does not count.
function fastestMs(target: FuzzTarget, input: Uint8Array): number {
  const times = Array.from({ length: TIMED }, () => {
    const before = process.cpuUsage();
    runQuietly(target, input);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...times);
}
